"""The growing classifier as users have it: parameters, defaults, data, history, progress."""

from __future__ import annotations

import io
import json
import pickle
import re
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from tests.estimator_cases import (
    adaptive,
    assert_same_model,
    assert_same_tree,
    formats,
    in_format,
    objective_of,
    problem,
    quick,
)
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier, Tree
from thinleaf.model.cost import summarize
from thinleaf.softmaxtree.growth import first_tree
from thinleaf.softmaxtree.growth.first_tree import CLASSES_PER_LEAF
from thinleaf.softmaxtree.growth.round_record import RoundRecord

INITS = (
    "random",
    "random_median",
    "pca_median",
    "class_clusters",
    "row_clusters",
    "balanced_clusters",
)
WAYS = {
    "plain": {},
    "without overlap": {"overlap": None},
    "depth 2": {"expansion_depth": 2},
    "validation": {"validation_fraction": 0.3, "zero_probability": "epsilon"},
    "zero_one": {"absent": "zero_one", "zero_probability": "none"},
    "clusters": {"init": "class_clusters"},
}
ways = pytest.mark.parametrize("way", WAYS)


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("contraction", 0.0),
        ("contraction", 1.0),
        ("contraction", np.nan),
        ("contraction", None),
        ("tolerance", -0.1),
        ("tolerance", np.inf),
        ("tolerance", None),
        ("initial_contraction", 0.0),
        ("initial_contraction", 1.5),
        ("initial_depth", -1),
        ("initial_depth", 25),
        ("initial_depth", 1.5),
        ("expansion_depth", 0),
        ("expansion_depth", 3),
        ("init", "kmeans"),
        ("max_sweeps", 0),
        ("expansion_sweeps", 0),
        ("max_rounds", -1),
        ("max_rounds", 2.5),
        ("max_depth", 0),
        ("max_leaves", 0),
        ("max_seconds", 0.0),
        ("max_seconds", -1.0),
        ("overlap", 0.0),
        ("overlap", 0.7),
        ("router_l1", -1.0),
        ("leaf_ridge", np.nan),
        ("beta", 0.0),
        ("monotone", "yes"),
        ("validation_fraction", 1.0),
        ("patience", 0),
        ("zero_probability", "laplace"),
        ("class_weight", "uniform"),
        ("checkpoint", 3),
        ("random_state", "seed"),
        ("n_jobs", 0),
        ("verbose", "loud"),
    ],
)
def test_parameters(name, value):
    X, y = problem()
    with pytest.raises(ValueError, match=name):
        adaptive(**{name: value}).fit(X, y)


def test_combinations_of_parameters():
    X, y = problem()
    with pytest.raises(ValueError, match="monotone=True needs overlap=None"):
        adaptive(monotone=True).fit(X, y)
    with pytest.raises(ValueError, match="needs a finite loss for absent classes"):
        adaptive(monotone=True, overlap=None, absent="drop").fit(X, y)
    with pytest.raises(ValueError, match="needs epsilon, or validation_fraction"):
        adaptive(zero_probability="epsilon").fit(X, y)
    with pytest.raises(TypeError, match="depth"):
        AdaptiveSoftmaxTreeClassifier(depth=3)


@pytest.mark.parametrize("absent", ["constant", "zero_one"])
@pytest.mark.parametrize("seed", [0, 3, 4])
def test_monotone_growth_never_raises_the_objective(absent, seed):
    """Neither by a sweep nor by a round: paper 000, section 5."""
    X, y = problem(seed, spread=1.0)
    given = {"overlap": None, "absent": absent, "max_sweeps": 5, "random_state": seed}
    clf = adaptive(monotone=True, tolerance=100.0, **given).fit(X, y)
    values = []
    for record in clf.history_:
        values += [*(sweep["objective"] for sweep in record["sweeps"]), record["objective"]]
    assert all(b <= a * (1 + 1e-6) + 1e-6 for a, b in pairwise(values))
    assert values[-1] == pytest.approx(objective_of(clf, X, y), rel=1e-5)


def test_monotone_trees_grow_where_that_lowers_the_objective():
    X, y = problem(4, spread=1.0)
    clf = adaptive(monotone=True, overlap=None, random_state=4).fit(X, y)
    assert len(clf.history_) > 1
    assert clf.history_[-1]["objective"] < clf.history_[0]["objective"]


def test_parameters_are_kept_and_cloned():
    given = {"contraction": 0.5, "tolerance": 1.25, "checkpoint": Path("a/b"), "max_leaves": 9}
    clf = AdaptiveSoftmaxTreeClassifier(**given)
    twin = clone(clf)
    for name, value in given.items():
        assert clf.get_params()[name] == twin.get_params()[name] == value
    assert "max_leaves=9" in repr(clf)
    assert clf.set_params(tolerance=2.0).tolerance == 2.0


def test_shared_parameters_have_the_same_defaults():
    fixed, growing = SoftmaxTreeClassifier().get_params(), AdaptiveSoftmaxTreeClassifier()
    shared = set(fixed) & set(growing.get_params()) - {
        "leaf_l1",
        "max_sweeps",
        "patience",
        "router_l1",
        "tol",
    }
    assert len(shared) > 10
    for name in shared:
        assert fixed[name] == growing.get_params()[name], name


@formats
def test_pickling_keeps_the_model(kind):
    X, y = problem(kind=kind, spread=1.0)
    clf = adaptive(validation_fraction=0.2).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    assert_same_model(again, clf)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


# -- defaults --------------------------------------------------------------------------------------


def first_limits(n_classes: int, **params) -> np.ndarray:
    """Return how many classes each node of the initial tree may hold."""
    y = np.arange(max(2 * n_classes, 60)) % n_classes
    X = np.random.default_rng(0).standard_normal((y.size, 4))
    seen = []

    class Watched(AdaptiveSoftmaxTreeClassifier):
        def _settings(self, data, leaf_limits):
            seen.append(leaf_limits)
            return super()._settings(data, leaf_limits)

    Watched(**adaptive(max_rounds=0, max_sweeps=1, **params).get_params()).fit(X, y)
    return seen[0]


@pytest.mark.parametrize("n_classes", [2, 8, 40, 500])
@pytest.mark.parametrize("contraction", [0.3, 0.95])
def test_leaves_start_with_a_share_of_all_classes_but_few_fair_ones(n_classes, contraction):
    limits = first_limits(n_classes, contraction=contraction, init="random")
    n_leaves = (limits.size + 1) // 2
    fair = -(-n_classes // n_leaves)
    expected = max(1, min(int(contraction * n_classes), first_tree._FAIR_SHARES * fair))
    assert set(limits) == {expected}
    assert n_leaves >= 4
    assert n_classes / n_leaves <= CLASSES_PER_LEAF
    assert n_leaves == 4 or n_classes / (n_leaves // 2) > CLASSES_PER_LEAF


@pytest.mark.parametrize(("share", "limit"), [(0.25, 10), (1.0, 40), (0.01, 1)])
def test_the_initial_tree_as_asked_for(share, limit):
    limits = first_limits(40, initial_contraction=share, initial_depth=3)
    assert limits.tolist() == [limit] * 15


@formats
def test_it_generalises_without_tuning(kind):
    X, y = problem(2, kind=kind, spread=0.5, n_rows=900, n_classes=8, n_features=10)
    clf = AdaptiveSoftmaxTreeClassifier(max_rounds=2, random_state=0).fit(X[:600], y[:600])
    assert clf.score(X[600:], y[600:]) > (0.9 if kind == "dense" else 0.65)


# -- growth ----------------------------------------------------------------------------------------


@formats
@ways
def test_the_history_says_what_was_kept(kind, way):
    X, y = problem(3, kind=kind, spread=1.0, n_classes=8)
    clf = adaptive(**WAYS[way]).fit(X, y)
    assert len(clf.history_) == clf.n_iter_ + 1
    assert [record["round"] for record in clf.history_] == list(range(clf.n_iter_ + 1))
    assert all(set(record) == set(RoundRecord.__annotations__) for record in clf.history_)
    best, shape = clf.history_[clf.best_round_], summarize(clf.tree_)
    for name in ("n_leaves", "depth", "mean_leaf_classes"):
        assert best[name] == getattr(shape, name)
    assert best["coverage"] == pytest.approx(clf.coverage_)
    seconds = [record["seconds"] for record in clf.history_]
    assert seconds == sorted(seconds)
    if way == "validation":
        errors = [record["validation_error"] for record in clf.history_]
        assert clf.best_round_ == int(np.argmin(errors))
        return
    assert clf.best_round_ == clf.n_iter_
    assert best["train_error"] == pytest.approx(1.0 - clf.score(X, y), abs=1e-9)
    assert best["objective"] == pytest.approx(objective_of(clf, X, y), rel=1e-5)
    assert best["flops"] == pytest.approx(clf.mean_flops(X))


def test_the_history_is_json():
    X, y = problem(4, spread=1.0)
    for params in ({}, {"validation_fraction": 0.3}):
        clf = adaptive(**params).fit(X, y)
        assert json.loads(json.dumps(clf.history_, allow_nan=False)) == clf.history_


@pytest.mark.parametrize(
    ("limit", "ended"),
    [
        ({"max_rounds": 0}, "rounds"),
        ({"max_rounds": 2}, "rounds"),
        ({"max_leaves": 6, "max_rounds": None}, "leaves"),
        ({"max_depth": 3, "max_rounds": None}, "depth"),
        ({"max_seconds": 1e-9}, "seconds"),
        ({"tolerance": 0.0, "max_rounds": None}, "no leaf expands"),
        ({"validation_fraction": 0.5, "patience": 1, "max_rounds": None}, "patience"),
    ],
    ids=str,
)
def test_why_growth_ended(limit, ended):
    X, y = problem(5, spread=1.5, n_classes=8, n_rows=200)
    clf = adaptive(**{"tolerance": 1.5} | limit).fit(X, y)
    assert clf.ended_ == ended
    assert clf.n_iter_ == max(len(clf.history_) - 1, 1)
    assert clf.tree_.n_leaves <= limit.get("max_leaves", 10**6)
    assert clf.tree_.depth <= limit.get("max_depth", 10**6)


@formats
@pytest.mark.parametrize("init", INITS)
def test_every_init_grows(kind, init):
    X, y = problem(6, kind=kind, spread=1.0, n_classes=8, n_rows=200)
    clf = adaptive(init=init, tolerance=1.5, max_rounds=2).fit(X, y)
    clf.tree_.validate()
    assert clf.history_[1]["accepted"] > 0


def test_thinner_leaves_by_more_rounds():
    X, y = problem(7, spread=0.8, n_classes=10, n_rows=300)
    clf = adaptive(tolerance=1.5).fit(X, y)
    sizes = [record["mean_leaf_classes"] for record in clf.history_]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]
    most = [record["max_leaf_classes"] for record in clf.history_]
    assert max(most) <= 7


# -- data ------------------------------------------------------------------------------------------


@formats
@ways
def test_weights_are_repetition(kind, way):
    X, y = problem(8, kind=kind, spread=1.0)
    params = {"max_rounds": 2} | WAYS[way]
    times = np.random.default_rng(0).integers(0, 4, size=y.size)
    many = np.repeat(np.arange(y.size), times)
    weighted = adaptive(**params).fit(X, y, sample_weight=times)
    assert_same_model(weighted, adaptive(**params).fit(X[many], y[many]))


@formats
@ways
def test_row_order_does_not_matter(kind, way):
    X, y = problem(9, kind=kind, spread=1.0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=y.size)
    order = np.random.default_rng(1).permutation(y.size)
    params = {"max_rounds": 2} | WAYS[way]
    a = adaptive(**params).fit(X, y, weight)
    assert_same_model(a, adaptive(**params).fit(X[order], y[order], weight[order]))


@formats
@ways
def test_threads_do_not_change_the_model(kind, way):
    X, y = problem(10, kind=kind, spread=1.2)
    params = {"max_rounds": 2} | WAYS[way]
    serial = adaptive(n_jobs=1, **params).fit(X, y)
    assert_same_model(serial, adaptive(n_jobs=2, **params).fit(X, y))


def test_a_seed_repeats_the_model():
    X, y = problem(11, spread=1.0)
    clf = adaptive(init="random").fit(X, y)
    assert_same_model(clf, clone(clf).fit(X, y))
    assert_same_model(clf, clf.fit(X, y))


def test_seeds_matter():
    X, y = problem(11, spread=1.0)
    a, b = (adaptive(init="random", random_state=s).fit(X, y) for s in (0, 1))
    assert not np.array_equal(a.predict_proba(X), b.predict_proba(X))
    states = [adaptive(random_state=np.random.RandomState(3)).fit(X, y) for _ in range(2)]
    assert_same_model(*states)


@formats
@pytest.mark.parametrize("init", INITS)
def test_one_class_only(kind, init):
    X, _ = problem(kind=kind, n_rows=20)
    clf = adaptive(init=init, max_rounds=None).fit(X, ["only"] * 20)
    assert set(clf.predict(X)) == {"only"}
    assert (clf.tree_.n_nodes, clf.coverage_, clf.ended_) == (1, 1.0, "no leaf expands")


@formats
@pytest.mark.parametrize("init", INITS)
def test_two_classes_and_few_rows(kind, init):
    X, y = problem(12, kind=kind, n_classes=2, spread=0.5)
    clf = adaptive(init=init, max_rounds=None, initial_depth=1).fit(X, y == 1)
    assert clf.classes_.tolist() == [False, True]
    assert clf.score(X, y == 1) > 0.8
    few = adaptive(init=init, initial_depth=4).fit(in_format(np.eye(4), kind), list("abcd"))
    few.tree_.validate()
    assert set(few.predict(in_format(np.eye(4), kind))) <= set("abcd")
    one = adaptive(init=init).fit(X[:1], ["a"])
    assert set(one.predict(X)) == {"a"}


@formats
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_rows_that_cannot_be_told_apart(kind):
    X = in_format(np.ones((30, 3)), kind)
    y = np.repeat([0, 1, 2], [5, 10, 15])
    clf = adaptive(initial_contraction=1.0, tolerance=9.0, max_rounds=None).fit(X, y)
    assert clf.tree_.n_nodes == 1
    assert set(clf.predict(X)) == {2}


def test_labels_sparse_containers_and_class_weights():
    X, y = problem(13, kind="csr", spread=1.0)
    names = np.array(["ash", "birch", "cedar", "elm", "fir", "oak"])
    plain = adaptive().fit(X, y)
    named = adaptive().fit(sp.coo_array(X), names[y])
    assert_same_tree(plain.tree_, named.tree_)
    np.testing.assert_array_equal(named.predict(X), names[plain.predict(X)])
    by_class = adaptive(class_weight={0: 3.0}).fit(X, y)
    assert_same_model(by_class, adaptive().fit(X, y, np.where(y == 0, 3.0, 1.0)))


# -- ST from AST -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def grown() -> AdaptiveSoftmaxTreeClassifier:
    X, y = problem(14, spread=1.0, n_classes=8, n_rows=250)
    return adaptive(tolerance=1.2).fit(X, y)


def unpruned(**params) -> SoftmaxTreeClassifier:
    """Return a classifier that leaves its tree as training made it."""

    class Unpruned(SoftmaxTreeClassifier):
        def _optimise(self, *arguments):
            result = super()._optimise(*arguments)
            self.trained_ = result.tree
            return result

    return Unpruned(**quick(depth=None, leaf_classes=None, **params).get_params())


@formats
@pytest.mark.parametrize("init", ["auto", "random", "random_median", "balanced_clusters"])
def test_a_structure_is_taken_without_its_parameters(kind, init, grown):
    X, y = problem(14, kind=kind, spread=1.0, n_classes=8, n_rows=250)
    structure = grown.tree_
    assert structure.n_leaves != 2**structure.depth
    clf = unpruned(structure=structure, init=init).fit(X, y)
    np.testing.assert_array_equal(clf.trained_.children, structure.children)
    sizes = np.diff(clf.trained_.class_ptr)
    assert np.all(sizes <= np.diff(structure.class_ptr))
    assert clf.tree_.n_leaves <= structure.n_leaves
    blank = Tree.build(
        structure.children,
        [structure.node(i) for i in range(structure.n_nodes)],
        n_features=structure.n_features,
        n_classes=structure.n_classes,
    )
    noise = {i: type(r)(r.features, -3 * r.weights, 1.0) for i, r in routers(structure)}
    other = unpruned(structure=blank.replace(noise), init=init).fit(X, y)
    assert_same_model(clf, other)  # parameters of the structure do not matter


def routers(tree: Tree):
    return [(i, tree.router(i)) for i in np.flatnonzero(~tree.is_leaf).tolist()]


def test_a_complete_structure_is_a_depth():
    X, y = problem(15, spread=1.0)
    complete = quick(depth=2, leaf_classes=3).fit(X, y)
    tree = Tree.complete(2, n_features=5, n_classes=6)
    wide = tree.leaf(3)
    three = type(wide)(
        np.arange(3, dtype=np.int32), wide.features, np.empty((0, 3), np.float32), np.zeros(3, "f")
    )
    structure = tree.replace(dict.fromkeys(range(3, 7), three))
    for init in INITS:
        params = {"init": init, "structure": structure}
        again = quick(depth=None, leaf_classes=None, **params).fit(X, y)
        assert_same_model(again, quick(init=init).fit(X, y))
    assert complete.tree_.n_leaves <= 4


def test_a_structure_of_other_data(grown):
    X, y = problem(16, n_features=9, n_classes=3)
    clf = quick(depth=None, leaf_classes=None, structure=grown.tree_).fit(X, y)
    assert (clf.tree_.n_features, clf.tree_.n_classes) == (9, 3)


@pytest.mark.parametrize("params", [{"depth": 2}, {"leaf_classes": 3}])
def test_a_structure_says_depth_and_leaf_classes(params, grown):
    X, y = problem()
    with pytest.raises(ValueError, match="structure says depth and leaf_classes: leave them None"):
        SoftmaxTreeClassifier(structure=grown.tree_, **params).fit(X, y)


@pytest.mark.parametrize("init", ["class_clusters", "row_clusters"])
def test_clusters_need_a_complete_structure(init, grown):
    X, y = problem(14, spread=1.0, n_classes=8, n_rows=250)
    with pytest.raises(ValueError, match=f"init='{init}' makes complete trees only"):
        SoftmaxTreeClassifier(structure=grown.tree_, init=init).fit(X, y)


def test_a_structure_is_cloned_and_pickled(grown):
    X, y = problem(14, spread=1.0, n_classes=8, n_rows=250)
    clf = quick(depth=None, leaf_classes=None, structure=grown.tree_).fit(X, y)
    assert_same_model(clone(clf).fit(X, y), clf)
    assert_same_model(pickle.loads(pickle.dumps(clf)), clf)
    assert "leaves" in repr(clf)


# -- progress --------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def line_of(record: dict) -> str:
    """Return the pattern of a round's line."""
    expanded = f"{record['accepted']} of {record['tried']} leaves expanded  "
    validated = ""
    if record["validation_error"] is not None:
        validated = f"validation error {100 * record['validation_error']:.2f} %  "
    return re.escape(
        f"AdaptiveSoftmaxTreeClassifier: round {record['round']}  "
        f"{expanded if record['round'] else ''}{record['n_leaves']} leaves of "
        f"{record['mean_leaf_classes']:.1f} classes, depth {record['depth']}  "
        f"train error {100 * record['train_error']:.2f} %  {validated}{record['seconds']:.1f} s"
    )


def lines_of(history: list[dict]) -> list[str]:
    """Return the patterns of all lines of a fit: those of a round's sweeps, then the round's."""
    return [
        pattern
        for record in history
        for pattern in (
            *(
                re.escape(
                    f"AdaptiveSoftmaxTreeClassifier: round {record['round']}, "
                    f"sweep {sweep['sweep']}/"
                )
                + r"\d+  "
                + re.escape(
                    f"train error {100 * sweep['train_error']:.2f} %  "
                    f"objective {sweep['objective']:.6g}  {sweep['seconds']:.1f} s"
                )
                for sweep in record["sweeps"]
            ),
            line_of(record),
        )
    ]


@pytest.mark.parametrize("params", [{}, {"validation_fraction": 0.3, "patience": 9}])
def test_progress_is_a_line_a_sweep_and_a_round(params, capsys):
    X, y = problem(17, spread=1.0)
    clf = adaptive(verbose=1, **params).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "\r" not in err
    assert "\x1b" not in err
    assert len(clf.history_[0]["sweeps"]) > 1
    for pattern, line in zip(lines_of(clf.history_), err.splitlines(), strict=True):
        assert re.fullmatch(pattern, line)


def test_the_round_before_the_end_is_shown_once(capsys):
    X, y = problem(17, spread=1.0)
    clf = adaptive(verbose=1, max_rounds=None).fit(X, y)
    assert clf.ended_ == "no leaf expands"
    assert len(capsys.readouterr().err.splitlines()) == len(lines_of(clf.history_))


def test_progress_on_a_terminal_shows_sweeps_too(monkeypatch):
    X, y = problem(17, spread=1.0)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    clf = adaptive(verbose=1).fit(X, y)
    drawn = terminal.getvalue()
    n_sweeps = sum(len(record["sweeps"]) for record in clf.history_)
    assert drawn.count("\r\x1b[2K") == n_sweeps + len(clf.history_)
    assert drawn.count("█") > 0
    standing = [line.split("\r\x1b[2K")[-1] for line in drawn.split("\n")[:-1]]
    assert len(standing) == len(clf.history_)
    for record, line in zip(clf.history_, standing, strict=True):
        assert re.fullmatch(line_of(record), line)


def test_silence(capsys):
    adaptive().fit(*problem())
    assert capsys.readouterr() == ("", "")
