"""What must hold of every online classifier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tests.estimator_cases import formats, in_format, problem
from thinleaf import (
    LOMTreeClassifier,
    ModelFileError,
    OnlineOneVsAllClassifier,
    RecallTreeClassifier,
    SoftmaxTreeClassifier,
    load,
    load_estimator,
)

CLASSIFIERS = {
    "recall": RecallTreeClassifier(random_state=0, bound_multiplier=0.1),
    "recall, few candidates": RecallTreeClassifier(2, random_state=0, bound_multiplier=0.0),
    "recall, all": RecallTreeClassifier(random_state=0, negatives="all"),
    "lom": LOMTreeClassifier(random_state=0, max_routers=12, swap_resistance=0.5),
    "one-vs-all": OnlineOneVsAllClassifier(random_state=0),
    "one-vs-all, known": OnlineOneVsAllClassifier(random_state=0, negatives="known"),
}
classifiers = pytest.mark.parametrize("name", CLASSIFIERS)


def new(name: str):
    return clone(CLASSIFIERS[name])


def data(kind: str = "dense", n_rows: int = 300, n_classes: int = 12, seed: int = 0):
    X, y = problem(seed, kind, n_rows=n_rows, n_classes=n_classes, n_features=7)
    return X, np.array([f"class {c}" for c in y])


def assert_same(a, b, X) -> None:
    """Equal to the last bit: state, progress and predictions."""
    first, second = a._stored()[0], b._stored()[0]
    assert first.keys() == second.keys()
    for key, array in first.items():
        np.testing.assert_array_equal(array, second[key], err_msg=key)
    assert a.progress_ == b.progress_
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


@formats
@classifiers
def test_in_pieces_or_in_one_go(name, kind):
    X, y = data(kind)
    whole, pieces = new(name).partial_fit(X, y), new(name)
    for start, stop in ((0, 1), (1, 5), (5, 70), (70, 71), (71, 300)):
        pieces.partial_fit(X[start:stop], y[start:stop])
    assert_same(whole, pieces, X)


@formats
@classifiers
def test_a_seeded_run_repeats(name, kind):
    X, y = data(kind)
    assert_same(new(name).fit(X, y), new(name).fit(X, y), X)
    other = new(name).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(other.predict_proba(X), new(name).fit(X, y).predict_proba(X))


@classifiers
def test_unshuffled_passes_are_partial_fits(name):
    X, y = data()
    fitted = new(name).set_params(shuffle=False, n_passes=2).fit(X, y)
    pieces = new(name).partial_fit(X, y, classes=np.unique(y)).partial_fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), pieces.predict(X))
    assert fitted.n_examples_ == pieces.n_examples_ == 600


@formats
@classifiers
def test_a_saved_model_goes_on_alike(name, kind, tmp_path):
    X, y = data(kind)
    straight = new(name).partial_fit(X[:150], y[:150])
    straight.save(tmp_path / "model", trainable=True)
    resumed = load_estimator(tmp_path / "model")
    assert_same(straight, resumed, X)
    straight.partial_fit(X[150:], y[150:])
    resumed.partial_fit(X[150:], y[150:])
    assert_same(straight, resumed, X)
    assert load_estimator(tmp_path / "model").n_examples_ == 150


@formats
@classifiers
def test_a_frozen_model_predicts_alike(name, kind, tmp_path):
    X, y = data(kind, n_rows=900)
    clf = new(name).partial_fit(X, y, classes=[*np.unique(y), "never"])
    frozen = clf.freeze()
    np.testing.assert_array_equal(frozen.labels, clf.classes_)
    P = clf.predict_proba(X)
    np.testing.assert_allclose(frozen.predict_proba(X), P, rtol=1e-3, atol=1e-5)
    near = np.sort(P, axis=1)[:, -2:]
    clear = near[:, 1] - near[:, 0] > 1e-4
    assert clear.mean() > 0.5
    np.testing.assert_array_equal(frozen.predict(X)[clear], clf.predict(X)[clear])
    clf.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), frozen.predict(X))
    with pytest.raises(ModelFileError, match="trainable=True"):
        load_estimator(tmp_path / "model")


@classifiers
def test_a_frozen_model_of_hashed_rows(name):
    X, y = data("csr", n_rows=600)
    for bits in (3, 12):
        clf = new(name).set_params(hash_bits=bits).partial_fit(X, y)
        P = clf.predict_proba(X)
        np.testing.assert_allclose(clf.freeze().predict_proba(X), P, rtol=1e-3, atol=1e-5)


@classifiers
def test_a_damaged_state_is_refused(name, tmp_path):
    """Whatever an array says, it is refused or harmless: kernels do not check."""
    X, y = data("csr")
    clf = new(name).partial_fit(X, y)
    clf.save(tmp_path / "model", trainable=True)
    model, (arrays, fitted) = load(tmp_path / "model"), clf._stored()
    rng = np.random.default_rng(0)
    refused = 0
    for key, array in arrays.items():
        with pytest.raises((ValueError, KeyError)):
            new(name)._restore({k: v for k, v in arrays.items() if k != key}, fitted, model)
        for bad in broken(array, rng):
            other = new(name)
            try:
                other._restore(arrays | {key: bad}, fitted, model)
            except (ValueError, TypeError):
                refused += 1
                continue
            other.predict(X)
            other.partial_fit(X, y)
    assert refused > 5 * len(arrays)


def test_labels_that_have_not_passed_the_root_are_refused(tmp_path):
    """Several arrays that fit each other: room is made by what the root has seen."""
    X, y = data("csr")
    for name, key in (("recall", "model.histograms.counts"), ("lom", "model.labels")):
        clf = new(name).partial_fit(X, y)
        clf.save(tmp_path / "model", trainable=True)
        model, (arrays, fitted) = load(tmp_path / "model"), clf._stored()
        n_root = arrays[f"{key}.ptr"][1]
        few = {
            f"{key}.ptr": np.where(
                np.arange(arrays[f"{key}.ptr"].size) > 0, arrays[f"{key}.ptr"] - n_root + 1, 0
            ),
            f"{key}.keys": np.delete(arrays[f"{key}.keys"], np.s_[1:n_root]),
            f"{key}.values": np.delete(arrays[f"{key}.values"], np.s_[1:n_root], axis=0),
        }
        if name == "recall":
            few["model.most_labels"] = arrays["model.most_labels"].copy()
            few["model.most_labels"][0] = 1
        with pytest.raises(ValueError, match="has labels that"):
            new(name)._restore(arrays | few, fitted, model)


@classifiers
def test_parameters_of_a_fitted_model_have_no_effect(name):
    X, y = data("csr")
    clf = new(name).partial_fit(X, y)
    P = clf.predict_proba(X)
    clf.set_params(hash_bits=20)
    np.testing.assert_array_equal(clf.predict_proba(X), P)
    clf.partial_fit(X, y).freeze().predict(X)


@classifiers
def test_a_refused_call_changes_nothing(name):
    X, y = data()
    clf = new(name).partial_fit(X, y)
    before = clf._stored()[0]
    for labels, classes in ((y, [7, 8]), (np.arange(300) % 7, None), (y, [["a"]])):
        with pytest.raises(ValueError, match=r"labels are|one dimension"):
            clf.partial_fit(X, labels, classes=classes)
    for key, array in clf._stored()[0].items():
        np.testing.assert_array_equal(array, before[key])
    assert clf.predict_proba(X).shape == (300, 12)


@formats
@classifiers
def test_probability_of_given_labels(name, kind):
    X, y = data(kind)
    clf = new(name).partial_fit(X, y, classes=[*np.unique(y), "never"])
    P = clf.predict_proba(X)
    at = np.searchsorted(clf.classes_, y)
    np.testing.assert_array_equal(clf.label_proba(X, y), P[np.arange(300), at])
    np.testing.assert_array_equal(clf.label_proba(X, ["never"] * 300), P[:, -1])
    with pytest.raises(ValueError, match="not seen in fit"):
        clf.label_proba(X, ["unheard"] * 300)


def test_routers_are_limited():
    """So that memory is bounded by classes, whatever the number of examples."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 5)), rng.integers(0, 8, 6000)
    clf = RecallTreeClassifier(4, bound_multiplier=0.0).partial_fit(X, y)
    assert clf.n_nodes_ == 2 * 16 * 8 + 1
    clf = RecallTreeClassifier(4, bound_multiplier=0.0, max_routers=20).partial_fit(X, y)
    assert clf.n_nodes_ == 41


@pytest.mark.parametrize("cls", [LOMTreeClassifier, RecallTreeClassifier])
def test_a_limit_that_is_none(cls):
    X, y = problem()
    one, other = (cls(max_routers=n, random_state=0).fit(X, y) for n in (10**6, 2**70))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_progressive_loss_is_that_of_the_first_pass():
    X, y = data()
    once = RecallTreeClassifier(4, random_state=0, n_passes=1).fit(X, y)
    often = RecallTreeClassifier(4, random_state=0, n_passes=3).fit(X, y)
    assert once.progressive_loss_ == often.progressive_loss_ == once.progressive_.loss
    assert often.progressive_.loss < often.progressive_loss_


def raced(kind: str, **given):
    X, y = data(kind, n_rows=1300)
    return X, y, RecallTreeClassifier(random_state=0, **given).fit(X[:1100], y[:1100])


@formats
def test_a_race_finds_what_is_not_given(kind, tmp_path):
    X, y, clf = raced(kind)
    assert set(clf.settings_) == {
        "max_candidates", "max_routers", "bound_multiplier", "recall_of", "path_features",
        "two_paths", "learning_rate", "router_learning_rate",
    }  # fmt: skip
    assert not any(value == "auto" for value in clf.settings_.values())
    assert clf.settings_["max_candidates"] == 12
    won = {"n_passes": clf.n_passes_, "beam": clf.beam_, "temperature": clf.temperature_}
    losses = [tried["loss"] for tried in clf.race_ if won.items() <= tried.items()]
    assert min(losses) == min(tried["loss"] for tried in clf.race_)
    assert clf.n_examples_ == 1100 * clf.n_passes_
    again = raced(kind)[2]
    assert again.race_ == clf.race_
    assert_same(clf, again, X)
    clf.save(tmp_path / "model", trainable=True)
    resumed = load_estimator(tmp_path / "model")
    assert resumed.settings_ == clf.settings_
    assert (resumed.beam_, resumed.temperature_) == (clf.beam_, clf.temperature_)
    assert_same(clf, resumed, X)
    assert_same(clf.partial_fit(X, y), resumed.partial_fit(X, y), X)


def test_a_race_leaves_what_is_given():
    given = {
        "max_candidates": 5, "bound_multiplier": 0.2, "path_features": True, "two_paths": False,
        "learning_rate": 0.7, "router_learning_rate": 0.9, "max_routers": 50,
    }  # fmt: skip
    _, _, clf = raced("dense", beam=3, n_passes=2, **given)
    assert clf.settings_ == given | {"recall_of": "node"}
    assert (clf.n_passes_, clf.beam_, clf.race_) == (2, 3, [])
    _, _, clf = raced("dense", n_passes=2, **given)
    assert clf.n_passes_ == 2
    assert {tried["n_passes"] for tried in clf.race_} == {3}


def test_settings_of_a_file_are_checked():
    _, _, clf = raced("dense", beam=2, n_passes=1)
    model, (arrays, fitted) = clf.freeze(), clf._stored()
    for change in (
        {"settings_": []},
        {"settings_": fitted["settings_"] | {"max_candidates": 65}},
        {"settings_": fitted["settings_"] | {"learning_rate": "auto"}},
        {"settings_": {"learning_rate": 1.0}},
        {"beam_": 0},
        {"beam_": 10**6},
        {"temperature_": 0.0},
        {"n_passes_": 0},
    ):
        with pytest.raises((ValueError, TypeError)):
            RecallTreeClassifier()._restore(arrays, fitted | change, model)
    RecallTreeClassifier()._restore(arrays, fitted, model)


def test_files_of_older_versions_are_read():
    """Those without what is shared with parents, the age of counts, and found settings."""
    X, y = data("csr")
    given = {
        "max_candidates": 4, "bound_multiplier": 1.0, "path_features": True, "learning_rate": 1.0,
        "router_learning_rate": 1.0, "n_passes": 2, "max_routers": None, "random_state": 0,
    }  # fmt: skip
    old = RecallTreeClassifier(**given, beam=1, two_paths=False, recall_of="node").fit(X, y)
    model, (arrays, fitted) = old.freeze(), old._stored()
    arrays["model.histograms.stats"] = arrays["model.histograms.stats"][:, :3].copy()
    arrays["model.sizes"] = arrays["model.sizes"][:2].copy()
    fitted = {k: v for k, v in fitted.items() if k in type(old)._fitted}
    read = RecallTreeClassifier(**RecallTreeClassifier._from_file(given))
    read._restore(arrays, fitted, model)
    np.testing.assert_array_equal(read.predict_proba(X), old.predict_proba(X))
    assert (read.beam_, read.settings_["recall_of"], read.settings_["two_paths"]) == (
        1, "node", False,
    )  # fmt: skip
    read.partial_fit(X, y)


@formats
@pytest.mark.parametrize("path_features", [True, False])
def test_a_beam_is_that_of_the_frozen_tree(kind, path_features):
    X, y = data(kind, n_rows=900)
    clf = RecallTreeClassifier(
        4, bound_multiplier=0.1, beam=5, path_features=path_features, half_life=300.0
    ).partial_fit(X, y, classes=[*np.unique(y), "never"])
    frozen, P = clf.freeze(), clf.predict_proba(X)
    assert frozen.beam == 5
    np.testing.assert_allclose(frozen.predict_proba(X), P, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    single = clone(clf).set_params(beam=1).partial_fit(X, y)
    assert not np.array_equal(single.predict(X), clf.predict(X))
    sparse = clf.predict_proba_sparse(X[:50])
    assert sparse.shape == (50, 13)
    np.testing.assert_allclose(sparse.toarray()[sparse.toarray() > 0], P[:50][sparse.toarray() > 0])


def test_new_classes_after_old_ones():
    """A tree learns them, whether it forgets or not, and counts stay within bounds."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((40, 6)) * 2
    y = np.concatenate([rng.integers(0, 20, 4000), rng.integers(20, 40, 1500)])
    X = (centres[y] + rng.standard_normal((5500, 6))).astype(np.float32)
    errors = {}
    for half_life in (None, 60.0):
        clf = RecallTreeClassifier(8, half_life=half_life).partial_fit(X, y)
        errors[half_life] = 1 - clf.score(X[-500:], y[-500:])
        assert clf.model_.state.histograms.stats[:, 0].max() < 1e16
    assert max(errors.values()) < 0.5


def broken(array: np.ndarray, rng: np.random.Generator):
    """Yield arrays that are not what was stored."""
    yield array.astype(np.complex128)
    yield array[..., None]
    if array.size == 0:
        return
    yield array[:-1]
    yield np.concatenate([array, array[-1:]])
    values = [-2, -1, 0, 1, 2**30] if array.dtype.kind == "i" else [-1e30, np.nan, np.inf]
    for value in values:
        for at in {0, array.size // 2, array.size - 1, int(rng.integers(array.size))}:
            bad = array.copy()
            bad.flat[at] = value
            yield bad


@classifiers
def test_classes_may_arrive_in_any_order(name):
    X, y = data()
    order = np.argsort(y, kind="stable")[::-1]  # one class after the other, last first
    clf = new(name)
    for start in range(0, 300, 25):
        rows = order[start : start + 25]
        clf.partial_fit(X[rows], y[rows])
        known = np.unique(y[order[: start + 25]])
        np.testing.assert_array_equal(clf.classes_, known)
        P = clf.predict_proba(X)
        assert P.shape == (300, known.size)
        np.testing.assert_allclose(P.sum(axis=1), 1.0)
        assert set(clf.predict(X)) <= set(known)


@formats
@classifiers
def test_one_example_at_a_time(name, kind):
    X, y = data(kind, n_rows=120)
    whole, single = new(name).partial_fit(X, y), new(name)
    said = []
    for i, label in enumerate(y):
        if kind == "csr" and i > 0:
            said.append(single.learn_one(X[i].indices, label, X[i].data))
        else:
            said.append(single.learn_one(X[i], label))
    assert_same(whole, single, X)
    assert said[0] is None
    wrong = sum(a != b for a, b in zip(said, y.tolist(), strict=True))
    assert wrong == round(single.progressive_loss_ * 120)


def test_one_example_that_does_not_fit():
    X, y = data()
    clf = RecallTreeClassifier().partial_fit(X, y)
    before = clf._stored()[0]
    for args, message in (
        ((X[0, :3], y[0]), "features"),
        ((X[0] * np.nan, y[0]), "finite"),
        ((X[0], 7), "labels are numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            clf.learn_one(*args)
    with pytest.raises(ValueError, match="weight"):
        clf.learn_one(X[0], y[0], weight=0.0)
    with pytest.raises(ValueError, match="whole row"):
        RecallTreeClassifier().learn_one([1], "a", [2.0])
    for key, array in clf._stored()[0].items():
        np.testing.assert_array_equal(array, before[key])


@classifiers
def test_names_of_classes_do_not_matter(name):
    X, y = data()
    renamed = np.array([f"{hash(label) % 1000:03d} {label}" for label in y])
    a, b = new(name).partial_fit(X, y), new(name).partial_fit(X, renamed)
    by_name = dict(zip(y, renamed, strict=True))
    assert [by_name[label] for label in a.predict(X)] == b.predict(X).tolist()


@classifiers
def test_announced_classes_get_a_column(name):
    X, y = data()
    clf = new(name).partial_fit(X[:50], y[:50], classes=[*np.unique(y), "never"])
    assert clf.classes_.tolist() == sorted({*y, "never"})
    assert clf.predict_proba(X).shape == (300, 13)
    assert "never" not in clf.predict(X)


@formats
@classifiers
def test_top_k_agrees_with_probabilities(name, kind):
    X, y = data(kind)
    clf = new(name).fit(X, y)
    P = clf.predict_proba(X)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(clf.classes_[P.argmax(axis=1)], clf.predict(X))
    for k in (1, 3, 12):
        labels, p = clf.predict_topk(X, k)
        np.testing.assert_allclose(p, -np.sort(-P, axis=1)[:, :k])
        at = np.searchsorted(clf.classes_, labels)
        np.testing.assert_allclose(np.take_along_axis(P, at, axis=1), p)
    np.testing.assert_array_equal(clf.predict_topk(X, 1)[0][:, 0], clf.predict(X))
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(X)), P)


@classifiers
def test_dense_and_sparse_rows_are_learned_alike(name):
    if getattr(new(name), "negatives", None) == "known":
        pytest.skip("of dense rows, all features are known")
    X, y = data("csr")
    sparse, dense = new(name).partial_fit(X, y), new(name).partial_fit(X.toarray(), y)
    assert np.mean(sparse.predict(X) == dense.predict(X)) > 0.95
    np.testing.assert_array_equal(dense.predict(X), dense.predict(X.toarray()))
    np.testing.assert_array_equal(sparse.predict(X), sparse.predict(X.toarray()))


@classifiers
def test_it_learns(name):
    X, y = data(n_rows=1500)
    clf = new(name)
    if name == "lom":
        clf.set_params(max_routers=60, swap_resistance=4.0)
    assert clf.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 4 / 12


@classifiers
def test_progress(name, capsys):
    X, y = data()
    clf = new(name).set_params(verbose=1, n_passes=2).fit(X, y)
    assert [record["examples"] for record in clf.progress_] == [2**i for i in range(10)]
    assert clf.progress_[0]["loss"] == 1.0
    assert clf.n_examples_ == 600
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert "512 examples  progressive loss" in lines[-1]


@classifiers
def test_memory_does_not_grow_with_examples(name):
    """Beyond what classes, features and nodes take: the same rows again and again."""
    X, y = data("csr")
    clf = new(name)
    sizes = []
    for _ in range(12):
        clf.partial_fit(X, y)
        sizes.append(sum(array.nbytes for array in clf._stored()[0].values()))
    assert sizes[-1] <= 3 * sizes[1]
    pairs = 7 * (
        12 + int(clf.model_.state[0].shape[0] if not name.startswith("one-vs-all") else 12)
    )
    assert sizes[-1] < 1_000_000 + 100 * pairs


@classifiers
def test_hashed_features_may_become_more(name, tmp_path):
    X, y = data("csr")
    wide = sp.hstack([X, X[:, :3] * 2.0]).tocsr()
    clf = new(name).set_params(hash_bits=12)
    clf.partial_fit(X, y).partial_fit(wide, y)
    assert clf.n_features_in_ == 10
    assert clf.predict(X).shape == clf.predict(wide).shape == (300,)
    np.testing.assert_array_equal(clf.predict(wide), clf.predict(wide.toarray()))
    clf.save(tmp_path / "model", trainable=True)
    assert_same(clf, load_estimator(tmp_path / "model"), wide)
    with pytest.raises(ValueError, match="features"):
        new(name).partial_fit(X, y).partial_fit(wide, y)


@classifiers
def test_few_bits_still_work(name):
    X, y = data("csr")
    clf = new(name).set_params(hash_bits=2).fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all()


@classifiers
def test_weights(name):
    X, y = data()
    weights = np.where(np.arange(300) < 100, 0.0, 1.0)
    weighted = new(name).partial_fit(X, y, sample_weight=weights)
    assert_same(weighted, new(name).partial_fit(X[100:], y[100:]), X)
    heavy = new(name).partial_fit(X, y, sample_weight=np.full(300, 3.0))
    assert heavy.n_examples_ == 300


@classifiers
def test_clear_errors(name):
    X, y = data()
    with pytest.raises(NotFittedError):
        new(name).predict(X)
    with pytest.raises(NotFittedError):
        new(name).freeze()
    clf = new(name).partial_fit(X, y)
    with pytest.raises(ValueError, match="labels are numbers"):
        clf.partial_fit(X, np.arange(300) % 3)
    with pytest.raises(ValueError, match=r"k must be an integer in 1\.\.12"):
        clf.predict_topk(X, 13)
    with pytest.raises(ValueError, match="sample_weight"):
        clf.partial_fit(X, y, sample_weight=-np.ones(300))
    with pytest.raises(ValueError, match="classes must have one dimension"):
        clf.partial_fit(X, y, classes=[["a"]])
    with pytest.raises(ValueError, match="learning_rate"):
        new(name).set_params(learning_rate=0.0).fit(X, y)
    np.testing.assert_array_equal(clf.classes_, np.unique(y))


@pytest.mark.parametrize("n_candidates", [0, 65])
def test_candidates_are_1_to_64(n_candidates):
    X, y = data()
    with pytest.raises(ValueError, match="max_candidates"):
        RecallTreeClassifier(n_candidates).fit(X, y)


@formats
def test_one_class_only(kind):
    X, _ = data(kind)
    for name in CLASSIFIERS:
        clf = new(name).fit(X, ["only"] * 300)
        assert set(clf.predict(X)) == {"only"}
        np.testing.assert_array_equal(clf.predict_proba(X), np.ones((300, 1)))


@classifiers
def test_rows_without_features(name):
    X = in_format(np.zeros((20, 3)), "csr")
    y = np.arange(20) % 3
    clf = new(name).fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all()


def test_ablations_change_the_model():
    X, y = data(n_rows=600)
    plain = RecallTreeClassifier(4, random_state=0, bound_multiplier=0.1).fit(X, y)
    for params in (
        {"path_features": True},
        {"two_paths": True},
        {"recall_of": "child"},
        {"half_life": 50.0},
        {"beam": 1},
        {"bound_multiplier": 0.0},
        {"max_candidates": 2},
        {"max_depth": 1},
        {"router_weight": "example"},
        {"loss": "squared"},
        {"router_loss": "squared"},
        {"learning_rate": 0.1},
        {"router_learning_rate": 0.1},
    ):
        other = clone(plain).set_params(**params).fit(X, y)
        assert not np.array_equal(other.predict_proba(X), plain.predict_proba(X)), params


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("system", ["recall", "lom"])
def test_trees_of_version_0_1_go_on_learning(system, kind):
    """Recall Trees were stored with a router for each node; answers are as they were."""
    path = Path(__file__).parents[1] / "data" / "online" / f"{system}-{kind}.thinleaf"
    deployed, clf = load(path), load_estimator(path)
    X = np.random.default_rng(1).normal(size=(200, 6)).astype(np.float32)
    rows = X if kind == "dense" else sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    np.testing.assert_array_equal(clf.predict(rows), deployed.predict(rows))
    clf.partial_fit(rows, np.arange(200) % 12)
    assert clf.predict(rows).shape == (200,)


@pytest.mark.parametrize("sparse", [False, True])
def test_tao_starts_from_the_routers_of_an_online_tree(sparse, tmp_path):
    rng = np.random.default_rng(0)
    centres = 4.0 * rng.normal(size=(12, 6))
    y = rng.integers(0, 12, 1500)
    X = (centres[y] + rng.normal(size=(1500, 6))).astype(np.float32)
    X = sp.csr_matrix(X) if sparse else X
    online = RecallTreeClassifier(
        4, bound_multiplier=0.0, n_passes=3, beam=1, random_state=0
    ).partial_fit(X, y)
    routers = online.router_tree()
    assert routers.n_leaves > 2
    tree = SoftmaxTreeClassifier(init=routers, max_sweeps=2, random_state=0).fit(X, y)
    assert tree.tree_.n_leaves <= routers.n_leaves
    assert tree.score(X, y) > 0.9
    again = SoftmaxTreeClassifier(init=routers, max_sweeps=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), tree.predict_proba(X))
    tree.save(tmp_path / "tree.thinleaf", trainable=True)
    loaded = load_estimator(tmp_path / "tree.thinleaf")
    assert loaded.init == "auto"
    np.testing.assert_array_equal(loaded.predict(X), tree.predict(X))


def test_a_tree_to_start_from_must_fit():
    X, y = np.eye(4, dtype=np.float32), np.arange(4)
    routers = RecallTreeClassifier(beam=1).partial_fit(X, y).router_tree()
    with pytest.raises(ValueError, match="has 4 features, X has 3"):
        SoftmaxTreeClassifier(init=routers).fit(X[:, :3], y)
    with pytest.raises(ValueError, match="leave depth None"):
        SoftmaxTreeClassifier(2, init=routers).fit(X, y)
