"""Forests: many trees as one model, and the estimator that trains them."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.estimator_cases import adaptive, assert_same_tree, formats, problem, quick
from tests.frozen_cases import (
    assert_same_answers,
    assert_same_frozen,
    both,
    frozen,
    layouts,
    real_rows,
    rich_forest,
    weight_types,
)
from tests.strategies import rich_tree
from thinleaf import (
    FrozenTree,
    SoftmaxForestClassifier,
    SoftmaxTreeClassifier,
    load,
    load_estimator,
)
from thinleaf._dtypes import INDEX
from thinleaf.arrays.files import ModelFileError, read_arrays, write_arrays
from thinleaf.arrays.rows import ranges
from thinleaf.model.forest import Forest, with_features
from thinleaf.model.packing import pack
from thinleaf.model.probability import Outside
from thinleaf.model.tree import Leaf, Tree, TreeError
from thinleaf.softmaxtree.tao import loop

SEEDS = (0, 1, 2, 3, 4)
WEIGHT_CHECKS = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "a bootstrap sample draws rows, however heavy they are",
)


def trees_of(seeds=SEEDS) -> list[Tree]:
    return [rich_tree(np.random.default_rng(seed)) for seed in seeds]


def forest(**params) -> SoftmaxForestClassifier:
    defaults = {"estimator": quick(random_state=None), "n_estimators": 4, "random_state": 0}
    return SoftmaxForestClassifier(**(defaults | params))


def assert_same_forest(a: SoftmaxForestClassifier, b: SoftmaxForestClassifier) -> None:
    assert len(a.estimators_) == len(b.estimators_)
    for ours, theirs in zip(a.estimators_, b.estimators_, strict=True):
        assert_same_tree(ours.tree_, theirs.tree_)
    np.testing.assert_array_equal(a.classes_, b.classes_)
    assert a.history_ == b.history_


# -- trees as one ----------------------------------------------------------------------------------


def test_nodes_are_numbered_breadth_first_over_all_trees():
    single = Tree.build([[-1, -1]], [Leaf.constant(3)], n_features=30, n_classes=9)
    trees = [single, *trees_of((0, 1))]
    whole = Forest.of(trees)
    assert whole.tree_of[:3].tolist() == [0, 1, 2]
    assert whole.node_of[:3].tolist() == [0, 0, 0]
    routers = np.flatnonzero(~whole.is_leaf)
    np.testing.assert_array_equal(whole.children[routers, 0], 3 + 2 * np.arange(routers.size))
    for node in range(whole.n_nodes):
        tree, own = trees[whole.tree_of[node]], int(whole.node_of[node])
        assert whole.is_leaf[node] == tree.is_leaf[own]
        assert whole.bias[node] == tree.bias[own]
        if not tree.is_leaf[own]:
            np.testing.assert_array_equal(whole.node_of[whole.children[node]], tree.children[own])
            assert set(whole.tree_of[whole.children[node]]) == {whole.tree_of[node]}


@pytest.mark.parametrize("beam", [1, 3])
@layouts
def test_probabilities_are_those_of_the_trees_averaged(sparse, beam):
    model = rich_forest(sparse=sparse, backoff=False, beam=beam)
    X = real_rows(n_rows=60)
    singles = [frozen(tree, sparse=sparse, epsilon=0.01, beam=beam) for tree in trees_of()]
    P = model.predict_proba(X)
    np.testing.assert_allclose(P, np.mean([m.predict_proba(X) for m in singles], axis=0), 1e-6)
    np.testing.assert_array_equal(model.apply(X).shape, (60, len(SEEDS)))
    bare = np.mean([m.predict_proba_sparse(X).toarray() for m in singles], axis=0)
    held = model.predict_proba_sparse(X).toarray()
    assert np.all((held > 0) == (bare > 0))
    y = np.arange(60) % 9
    np.testing.assert_allclose(model.label_proba(X, y), P[np.arange(60), y], 1e-12)


@pytest.mark.parametrize("backoff", [True, False])
@pytest.mark.parametrize(("beam", "temperature"), [(1, 1.0), (2, 1.0), (5, 8.0), (40, 0.01)])
@weight_types
@layouts
def test_the_vote_is_the_most_probable_class(sparse, weights, beam, temperature, backoff):
    model = rich_forest(sparse=sparse, weights=weights, backoff=backoff)
    model = model.with_beam(beam, temperature=temperature)
    X = real_rows(n_rows=300)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, 1e-9)
    predicted = model.predict(X)
    np.testing.assert_allclose(P[np.arange(300), predicted], P.max(axis=1), 1e-9)
    assert predicted.tolist() == [model.predict_one(x) for x in X]
    sparse_rows = [(np.flatnonzero(x).astype(INDEX), x[x != 0]) for x in X]
    assert predicted.tolist() == [model.predict_one(*pair) for pair in sparse_rows]
    np.testing.assert_array_equal(predicted, model.predict(X, n_jobs=2))
    p = model.predict_topk(X, 3)[1]
    assert np.all(np.diff(p, axis=1) <= 0)
    np.testing.assert_allclose(np.sort(P, axis=1)[:, ::-1][:, :3], p, 1e-12)


@pytest.mark.parametrize("temperature", [0.2, 1.0, 20.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@layouts
def test_the_vote_of_a_beam_of_one_tree(sparse, epsilon, temperature):
    for seed in SEEDS:
        tree = rich_tree(np.random.default_rng(seed))
        model = frozen(tree, sparse=sparse, epsilon=epsilon)
        model = model.with_beam(4, temperature=temperature)
        X = real_rows(n_rows=100)
        P = model.predict_proba(X)
        np.testing.assert_allclose(P[np.arange(100), model.predict(X)], P.max(axis=1), 1e-9)


def test_a_vote_over_more_classes_than_it_has_room_for():
    """Every tree has a leaf of its own 1,500 classes, and a few that all have."""
    n_classes, n_trees = 4600, 3
    rng = np.random.default_rng(0)
    leaves = []
    for _ in range(n_trees):
        classes = np.sort(rng.permutation(n_classes)[:1500]).astype(INDEX)
        weights = rng.normal(size=(4, 1500)).astype(np.float32)
        leaves.append(
            Tree.build(
                [[-1, -1]],
                [Leaf(classes, np.arange(4, dtype=INDEX), weights, np.zeros(1500, np.float32))],
                n_features=4,
                n_classes=n_classes,
            )
        )
    whole = Forest.of(leaves)
    packed = pack(whole, Outside.of(whole, None, 0.0), sparse=False, n_trees=n_trees)
    model = FrozenTree(packed, np.arange(n_classes))
    X = rng.normal(size=(20, 4)).astype(np.float32)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))


@pytest.mark.parametrize("n_trees", [1, 2, 4, 5])
@weight_types
@layouts
def test_a_prefix_is_the_forest_of_the_first_trees(sparse, weights, n_trees):
    model = rich_forest(sparse=sparse, weights=weights, backoff=False).prefix(n_trees)
    first = rich_forest(SEEDS[:n_trees], sparse=sparse, weights=weights, backoff=False)
    skipped = {"prior", "rank"}  # those of all trees
    for name, array in model.packed.arrays().items():
        if name not in skipped:
            np.testing.assert_array_equal(array, first.packed.arrays()[name], name, strict=True)
    assert model.n_trees == n_trees
    X = real_rows()
    np.testing.assert_allclose(model.predict_proba(X), first.predict_proba(X), 1e-12)


@pytest.mark.parametrize("n_trees", [0, 6, True, 1.0, "2"])
def test_a_prefix_has_some_trees(n_trees):
    with pytest.raises(ValueError, match=r"n_trees must be an integer in 1\.\.5"):
        rich_forest().prefix(n_trees)


def test_ranges():
    np.testing.assert_array_equal(
        ranges(np.array([5, 0, 9]), np.array([2, 0, 3])), [5, 6, 9, 10, 11]
    )


def test_features_of_a_part_become_features_of_all():
    tree = rich_tree(np.random.default_rng(0))
    features = np.sort(np.random.default_rng(1).permutation(50)[: tree.n_features]).astype(INDEX)
    wide = with_features(tree, features, 50)
    wide.validate()
    X = np.zeros((40, 50), dtype=np.float32)
    X[:, features] = real_rows(n_features=tree.n_features)
    np.testing.assert_array_equal(
        frozen(wide).predict(X), frozen(tree).predict(real_rows(n_features=tree.n_features))
    )


# -- files -----------------------------------------------------------------------------------------


@weight_types
@layouts
def test_a_file_is_the_forest(tmp_path, sparse, weights):
    model = rich_forest(sparse=sparse, weights=weights, beam=2)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert back.n_trees == len(SEEDS)
    assert "5 trees" in repr(back)
    assert_same_frozen(model, back)
    for X in both(real_rows()):
        assert_same_answers(model, back, X)
        assert_same_answers(model.prefix(3), back.prefix(3), X)


@pytest.mark.parametrize("n_trees", [0, -1, 1, 4, 6, 10**18, True, "5", None, 5.0])
def test_a_file_with_another_number_of_trees_is_rejected(tmp_path, n_trees):
    rich_forest().save(tmp_path / "m")
    arrays, metadata = read_arrays(tmp_path / "m")
    write_arrays(tmp_path / "bad", dict(arrays), dict(metadata) | {"n_trees": n_trees})
    with pytest.raises(ModelFileError):
        load(tmp_path / "bad")


def test_a_file_without_a_number_of_trees_is_of_the_first_version(tmp_path):
    frozen(rich_tree(np.random.default_rng(0))).save(tmp_path / "m")
    arrays, metadata = read_arrays(tmp_path / "m")
    assert metadata["version"] == 1
    assert "n_trees" not in metadata
    assert load(tmp_path / "m").n_trees == 1
    write_arrays(tmp_path / "bad", dict(arrays), dict(metadata) | {"version": 2})
    with pytest.raises(ModelFileError):
        load(tmp_path / "bad")
    write_arrays(tmp_path / "one", dict(arrays), dict(metadata) | {"version": 2, "n_trees": 1})
    assert load(tmp_path / "one").n_trees == 1


def test_a_packed_forest_is_checked():
    packed = rich_forest().packed
    for n_trees in (0, 4, 6, packed.n_leaves + 1):
        with pytest.raises(TreeError):
            type(packed)(
                packed.n_features, packed.n_classes, packed.sparse, packed.weights, n_trees,
                **packed.arrays(),
            ).validate()  # fmt: skip


# -- the estimator ---------------------------------------------------------------------------------


@parametrize_with_checks(
    [
        SoftmaxForestClassifier(n_estimators=2, random_state=0),
        SoftmaxForestClassifier(
            SoftmaxTreeClassifier(depth=2, max_sweeps=3),
            3,
            bootstrap=True,
            oob_score=True,
            random_state=0,
        ),
    ],
    expected_failed_checks=lambda clf: WEIGHT_CHECKS if clf.bootstrap else {},
)
def test_scikit_learn(estimator, check):
    check(estimator)


@formats
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"bootstrap": True, "oob_score": True},
        {"max_features": 0.6},
        {"patience": 2, "validation_fraction": 0.2, "n_estimators": 6},
        {"patience": 1, "bootstrap": True, "oob_score": True, "n_estimators": 6},
        {"estimator": adaptive(max_rounds=1)},
    ],
    ids=str,
)
def test_the_same_forest_whatever_the_number_of_threads(kind, params):
    X, y = problem(0, kind=kind, spread=1.5, n_classes=6, n_rows=120)
    one = forest(n_jobs=1, **params).fit(X, y)
    two = forest(n_jobs=3, **params).fit(X, y)
    assert_same_forest(one, two)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@formats
def test_probabilities_are_the_mean_of_the_estimators(kind):
    X, y = problem(1, kind=kind, spread=1.5, n_classes=6, n_rows=120)
    names = np.array(["b", "c", "a", "f", "e", "d"])[y]
    clf = forest().fit(X, names)
    assert len({tree.tree_.router_val.tobytes() for tree in clf.estimators_}) > 1
    mean = np.mean([tree.predict_proba(X) for tree in clf.estimators_], axis=0)
    np.testing.assert_allclose(clf.predict_proba(X), mean, 1e-9)
    assert set(clf.estimators_[0].predict(X)) <= set(names)
    assert clf.score(X, names) >= np.mean([tree.score(X, names) for tree in clf.estimators_])


@pytest.mark.parametrize("bootstrap", [False, True])
def test_the_first_trees_are_the_smaller_forest(bootstrap):
    X, y = problem(2, spread=1.5, n_classes=6, n_rows=120)
    params = {"bootstrap": bootstrap, "oob_score": bootstrap, "max_features": 0.7}
    whole = forest(n_estimators=5, **params).fit(X, y)
    small = forest(n_estimators=2, **params).fit(X, y)
    assert_same_forest(whole.prefix(2), small)
    np.testing.assert_array_equal(whole.prefix(2).predict_proba(X), small.predict_proba(X))
    grown = forest(n_estimators=2, warm_start=True, **params).fit(X, y)
    grown.set_params(n_estimators=5).fit(X, y)
    assert_same_forest(whole, grown)
    if bootstrap:
        assert whole.prefix(2).oob_error_ == small.oob_error_
        assert whole.oob_error_ == grown.oob_error_
    frozen_whole, frozen_small = whole.freeze().prefix(2), small.freeze()
    np.testing.assert_allclose(
        frozen_whole.predict_proba(X), frozen_small.predict_proba(X), atol=0.02
    )


def test_warm_start_goes_on_after_any_seed():
    X, y = problem(2, spread=1.5, n_classes=6, n_rows=120)
    clf = forest(n_estimators=2, warm_start=True, bootstrap=True, oob_score=True, random_state=None)
    first = clf.fit(X, y).estimators_
    error = clf.history_
    clf.set_params(n_estimators=4).fit(X, y)
    assert clf.estimators_[:2] == first
    assert clf.history_[:2] == error


def test_out_of_bag_error_by_hand():
    X, y = problem(3, spread=1.5, n_classes=5, n_rows=90)
    clf = forest(n_estimators=6, bootstrap=True, oob_score=True).fit(X, y)
    votes, seen = np.zeros((90, 5)), np.zeros(90, dtype=bool)
    for tree in clf.estimators_:
        seed = np.random.SeedSequence(tree.random_state, spawn_key=(2,))
        drawn = np.random.default_rng(seed).integers(90, size=90)
        out = np.setdiff1d(np.arange(90), drawn)
        votes[out] += tree.freeze().predict_proba_sparse(X[out].astype(np.float32)).toarray()
        seen[out] = True
    assert clf.oob_error_ == pytest.approx(np.mean((votes.argmax(axis=1) != y)[seen]))
    assert [entry["n_trees"] for entry in clf.history_] == [1, 2, 3, 4, 5, 6]


def test_patience_keeps_the_trees_up_to_the_lowest_error():
    X, y = problem(4, spread=2.5, n_classes=6, n_rows=200)
    clf = forest(n_estimators=30, patience=3, validation_fraction=0.1).fit(X, y)
    errors = [entry["error"] for entry in clf.history_]
    best = int(np.argmin(errors)) + 1
    assert len(clf.estimators_) == best
    assert len(errors) == best + 3 < 30
    held = forest(n_estimators=best).fit(X, y)
    assert not np.array_equal(held.predict_proba(X), clf.predict_proba(X))  # fewer rows
    clf.set_params(warm_start=True).fit(X, y)
    assert len(clf.estimators_) == best


def test_classes_that_no_sample_has_stay_known():
    X, y = problem(5, n_classes=4, n_rows=60)
    y = y.copy()
    y[0] = 99
    clf = forest(n_estimators=3, bootstrap=True).fit(X, y)
    assert clf.classes_.tolist() == [0, 1, 2, 3, 99]
    assert clf.predict_proba(X).shape == (60, 5)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0, 1e-9)


def test_rows_without_weight_are_not_there():
    X, y = problem(6, n_classes=4, n_rows=80)
    weight = np.ones(80)
    weight[60:] = 0.0
    with_weights = forest().fit(X, y, weight)
    without = forest().fit(X[:60], y[:60])
    np.testing.assert_array_equal(with_weights.predict(X), without.predict(X))


@formats
def test_estimators_come_back(tmp_path, kind):
    X, y = problem(7, kind=kind, spread=1.5, n_classes=6, n_rows=120)
    clf = forest(bootstrap=True, oob_score=True, max_features=0.8).fit(X, y)
    clf.save(tmp_path / "m", trainable=True)
    back = load_estimator(tmp_path / "m")
    assert_same_forest(clf, back)
    assert back.oob_error_ == clf.oob_error_
    assert back.estimator.get_params() == clf.estimator.get_params()
    np.testing.assert_array_equal(clf.predict_proba(X), back.predict_proba(X))
    more = back.set_params(n_estimators=6, warm_start=True).fit(X, y)
    assert_same_forest(more, forest(**clf.get_params(deep=False) | {"n_estimators": 6}).fit(X, y))
    assert load(tmp_path / "m").n_trees == 4


def test_a_hostile_description_is_rejected(tmp_path):
    X, y = problem(7, n_classes=4, n_rows=60)
    forest(n_estimators=2).fit(X, y).save(tmp_path / "m", trainable=True)
    arrays, metadata = read_arrays(tmp_path / "m")

    def attempt(change) -> None:
        changed = json.loads(json.dumps(dict(metadata)))
        change(changed["sections"]["training"])
        write_arrays(tmp_path / "bad", dict(arrays), changed)
        with pytest.raises(ModelFileError):
            load_estimator(tmp_path / "bad")

    attempt(lambda t: t["fitted"]["trees"].pop())
    attempt(lambda t: t["fitted"]["trees"][0].update(estimator="SoftmaxForestClassifier"))
    attempt(lambda t: t["fitted"]["trees"][0].update(estimator="RecallTreeClassifier"))
    attempt(lambda t: t["fitted"]["trees"][0].update(estimator="os.system"))
    attempt(lambda t: t["fitted"]["trees"].append(3))
    attempt(lambda t: t["fitted"].update(trees=[1, 2]))
    attempt(lambda t: t["fitted"].update(history_=[1]))
    attempt(lambda t: t["fitted"].update(history_=[{"error": "none"}]))
    attempt(lambda t: t["fitted"]["trees"][0].update(fitted=[1]))
    attempt(lambda t: t["parameters"].update(bootstrap=True, oob_score=True))
    attempt(lambda t: t["fitted"].update(n_features_in_=7))
    attempt(lambda t: t["parameters"].update(estimator="x"))
    attempt(lambda t: t["parameters"].update(estimator={"estimator": "os", "parameters": {}}))
    attempt(
        lambda t: t["parameters"]["estimator"].update(
            estimator="AdaptiveSoftmaxTreeClassifier", parameters={"checkpoint": "elsewhere"}
        )
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"max_features": 0.0}, "max_features"),
        ({"max_features": 1.5}, "max_features"),
        ({"estimator": "st"}, "estimator"),
        ({"patience": 0}, "patience"),
        ({"oob_score": True}, "oob_score=True needs bootstrap=True"),
        ({"estimator": adaptive(checkpoint="somewhere")}, "cannot share a checkpoint"),
        ({"estimator": quick(monotone=True)}, "monotone=True needs overlap=None"),
        ({"patience": 1}, "patience needs an error to look at"),
        (
            {"bootstrap": True, "oob_score": True, "validation_fraction": 0.1},
            "look at one error",
        ),
        ({"validation_fraction": 1e-9}, "leaves no rows"),
    ],
)
def test_bad_parameters(params, message):
    X, y = problem(0, n_classes=3, n_rows=30)
    with pytest.raises(ValueError, match=message):
        forest(**params).fit(X, y)


def test_warm_start_does_not_take_trees_away():
    X, y = problem(0, n_classes=3, n_rows=40)
    clf = forest(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"take prefix\(2\)"):
        clf.set_params(n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="n_estimators must be an integer"):
        clf.prefix(9)


def test_warm_start_needs_trees_that_go_together():
    X, y = problem(0, n_classes=3, n_rows=40)
    clf = forest(warm_start=True).fit(X, y)
    clf.set_params(n_estimators=6, estimator__zero_probability="none")
    with pytest.raises(ValueError, match="the same zero_probability"):
        clf.fit(X, y)


@pytest.mark.parametrize("zero_probability", ["backoff", "none"])
def test_warm_start_without_a_class(zero_probability):
    X, y = problem(4, n_classes=4, n_rows=80)
    tree = quick(zero_probability=zero_probability)
    clf = forest(estimator=tree, n_estimators=2, warm_start=True).fit(X, y)
    kept = y != 2
    clf.set_params(n_estimators=4).fit(X[kept], y[kept])
    assert {tree.tree_.n_classes for tree in clf.estimators_} == {4}
    assert clf.score(X[kept], y[kept]) > 0.9
    assert set(clf.estimators_[3].predict(X)) <= {0, 1, 3}


def test_warm_start_looks_at_errors_of_unseen_rows_only():
    X, y = problem(4, n_classes=4, n_rows=80)
    clf = forest(n_estimators=2, warm_start=True).fit(X, y)
    held_out = {"n_estimators": 4, "validation_fraction": 0.2}
    for params in (held_out, {"n_estimators": 4, "bootstrap": True, "oob_score": True}):
        changed = clone_fitted(clf).set_params(**params)
        with pytest.raises(ValueError, match="errors of trees of an earlier fit"):
            changed.fit(X, y)
        assert len(changed.estimators_) == 2
    clf = forest(n_estimators=2, warm_start=True, bootstrap=True, oob_score=True).fit(X, y)
    with pytest.raises(ValueError, match="errors of trees of an earlier fit"):
        clf.set_params(n_estimators=3).fit(X[:70], y[:70])


def clone_fitted(clf: SoftmaxForestClassifier) -> SoftmaxForestClassifier:
    return pickle.loads(pickle.dumps(clf))


def test_an_out_of_bag_error_does_not_outlive_its_forest():
    X, y = problem(4, n_classes=4, n_rows=80)
    clf = forest(bootstrap=True, oob_score=True).fit(X, y)
    clf.set_params(bootstrap=False, oob_score=False).fit(X, y)
    assert not hasattr(clf, "oob_error_")
    assert clf.prefix(1).history_ == []


def test_nothing_out_of_bag(tmp_path):
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    for seed in range(20):
        clf = forest(
            estimator=SoftmaxTreeClassifier(depth=0, max_sweeps=1),
            n_estimators=1,
            bootstrap=True,
            oob_score=True,
            random_state=seed,
        ).fit(X, y)
        if np.isnan(clf.oob_error_):
            break
    assert clf.history_ == [{"n_trees": 1, "error": None}]
    clf.save(tmp_path / "m", trainable=True)
    assert np.isnan(load_estimator(tmp_path / "m").oob_error_)


@pytest.mark.parametrize("kind", ["str", "int"])
def test_class_weights_are_those_of_labels(kind):
    X, y = problem(5, n_classes=3, n_rows=60, spread=2.0)
    labels = np.array(["a", "b", "c"])[y] if kind == "str" else y + 1
    heavy = {labels[y == 0][0]: 50.0}
    clf = forest(estimator=quick(class_weight=heavy)).fit(X, labels)
    same = forest().fit(X, labels, np.where(y == 0, 50.0, 1.0))
    np.testing.assert_array_equal(clf.predict_proba(X), same.predict_proba(X))


def test_trees_of_any_valid_setting(tmp_path):
    X, y = problem(5, n_classes=3, n_rows=60)
    structure = quick().fit(X, y).tree_
    tree = SoftmaxTreeClassifier(structure=structure, max_sweeps=2, epsilon=np.float32(0.01))
    clf = forest(estimator=tree.set_params(random_state=np.random.RandomState(0))).fit(X, y)
    assert clf.freeze().summary["parameters"]["estimator"]["parameters"]["max_sweeps"] == 2
    with pytest.raises(ValueError, match="cannot be written to a model file"):
        clf.save(tmp_path / "m", trainable=True)
    clf = forest(estimator=quick(zero_probability="epsilon", epsilon=np.float32(0.01))).fit(X, y)
    clf.save(tmp_path / "m", trainable=True)
    np.testing.assert_array_equal(load_estimator(tmp_path / "m").predict(X), clf.predict(X))


def test_a_prefix_is_apart_from_its_forest(tmp_path):
    X, y = problem(5, n_classes=3, n_rows=60)
    clf = forest().fit(X, y)
    clf.prefix(2).set_params(estimator__depth=1)
    assert clf.estimator.depth == 2
    clf.save(tmp_path / "m", trainable=True)
    small = load(tmp_path / "m").prefix(2)
    assert small.sections == {}
    assert small.summary["trees"] == 2
    clf.estimators_[0].fit(X, (y + 1) % 3)
    assert not np.array_equal(clf.predict_proba(X), small.predict_proba(X))


def test_ctrl_c_keeps_the_trees_that_are_done(monkeypatch):
    X, y = problem(8, n_classes=5, n_rows=90)
    whole = forest().fit(X, y)
    n_sweeps = sum(tree.n_iter_ for tree in whole.estimators_[:2])
    original, done = loop.sweep, [0]

    def sweep(*args, **options):
        done[0] += 1
        if done[0] == n_sweeps + 2:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr(loop, "sweep", sweep)
    with pytest.warns(UserWarning, match="interrupted: 2 tree"):
        clf = forest().fit(X, y)
    assert_same_forest(clf, whole.prefix(2))
    done[0] = n_sweeps + 1  # at once
    with pytest.raises(KeyboardInterrupt):
        forest().fit(X, y)


def test_progress(capsys):
    X, y = problem(9, n_classes=4, n_rows=60)
    forest(n_estimators=2, bootstrap=True, oob_score=True, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("SoftmaxForestClassifier: tree 2/2  held-out error ")


def test_flops_add_up():
    X, y = problem(9, n_classes=4, n_rows=60)
    clf = forest(n_estimators=3).fit(X, y)
    assert clf.mean_flops(X) == pytest.approx(sum(t.mean_flops(X) for t in clf.estimators_))
    assert sp.issparse(clf.freeze().predict_proba_sparse(X))
