"""Trees that decide by rows held out: shape, beam, repetition, files, checkpoints, Ctrl-C."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import thinleaf
from tests.estimator_cases import (
    PENALTIES,
    assert_same_model,
    assert_same_tree,
    formats,
    problem,
    quick,
)
from tests.softmaxtree.test_checkpoint import fit_and_die
from thinleaf import AdaptiveSoftmaxTreeClassifier, FlatSoftmaxClassifier
from thinleaf.estimators import adaptive_tree
from thinleaf.softmaxtree.growth import adapt, candidates
from thinleaf.softmaxtree.growth import expand as growth
from thinleaf.softmaxtree.tao import fit_leaves, loop


def held_out(**params) -> AdaptiveSoftmaxTreeClassifier:
    return AdaptiveSoftmaxTreeClassifier(**({"random_state": 0} | params))


def grid(n_rows: int = 600, seed: int = 0, size: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Return points of a board whose fields have classes without any order."""
    X = np.random.default_rng(seed).uniform(0.0, size, (n_rows, 2))
    classes = np.random.default_rng(9).integers(12, size=(size, size))
    row, column = np.floor(X).astype(int).T
    return X, classes[row, column]


def words(n_rows: int = 300, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return texts of six classes, each with words of its own beside those of all."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % 6
    X = np.zeros((n_rows, 60))
    for x, c in zip(X, y, strict=True):
        x[rng.integers(5, size=2) + 5 * c] = 1.0
        x[30 + rng.integers(30, size=3)] = 1.0
    return sp.csr_matrix(X / np.linalg.norm(X, axis=1, keepdims=True)), y


CASES = {
    "grid": grid,
    "words": words,
    "dense": lambda: problem(0, spread=0.6, n_classes=8, n_rows=200),
    "sparse": lambda: problem(1, kind="csr", spread=1.0, n_classes=8, n_rows=200),
}
cases = pytest.mark.parametrize("case", CASES)

FOUND = ("beam_", "temperature_", "leaf_loss_", "leaf_strength_")


def assert_same(a, b) -> None:
    assert_same_model(a, b)
    for name in FOUND:
        assert getattr(a, name) == getattr(b, name), name


@pytest.fixture(scope="module")
def fits() -> dict[str, AdaptiveSoftmaxTreeClassifier]:
    """Return a fit of each case."""
    return {name: held_out().fit(*make()) for name, make in CASES.items()}


# -- shapes ----------------------------------------------------------------------------------------


def test_a_tree_grows_where_it_must_be_deep(fits):
    """Its errors on new rows are far below those of one flat leaf, which knows no boundaries."""
    clf, (X, y) = fits["grid"], grid(seed=1)
    flat = FlatSoftmaxClassifier().fit(*grid())
    grown = AdaptiveSoftmaxTreeClassifier(init="pca_median", random_state=0).fit(*grid())
    assert grown.n_iter_ > 1
    for tree in (clf, grown):  # one may have begun as a decision tree
        assert tree.tree_.n_leaves > 12
        assert 1.0 - tree.score(X, y) < 0.5 * (1.0 - flat.score(X, y))


def test_first_replacements_that_gain_little_do_not_end_the_growth_of_dense_trees(monkeypatch):
    """A few leaves say little; on sparse rows, a round would cost more than it is worth."""
    monkeypatch.setattr(growth, "worth_a_round", lambda gains: False)
    assert held_out(initial_depth=2).fit(*grid()).n_iter_ > 1
    X, y = words()
    clf = held_out(initial_depth=2, leaf_loss="softmax").fit(X, y)
    assert len(clf.history_) == 1


def test_leaves_of_sparse_rows_are_fitted_last(monkeypatch):
    fitted = []

    def watching(tree, data, settings, executor):
        fitted.append(fit_leaves(tree, data, settings, executor))
        return fitted[-1]

    monkeypatch.setattr(adapt, "fit_leaves", watching)
    clf = held_out(initial_depth=2).fit(*words())
    assert fitted[0].n_leaves >= clf.tree_.n_leaves > 1
    held_out(initial_depth=2).fit(*grid())
    held_out(initial_depth=0, max_rounds=0).fit(*words())
    assert len(fitted) == 1


def test_scales_of_features_do_not_matter_to_dense_trees(fits):
    (X, y), (X_new, y_new) = grid(), grid(seed=1)
    factors = np.array([1e3, 1e-3])
    clf = held_out().fit(X * factors, y)
    error, scaled = 1.0 - fits["grid"].score(X_new, y_new), 1.0 - clf.score(X_new * factors, y_new)
    assert abs(error - scaled) < 0.04


def test_texts_that_planes_separate_have_one_leaf(fits):
    clf, (X, y) = fits["words"], words(seed=1)
    assert clf.tree_.n_leaves == 1
    assert clf.score(X, y) > 0.95
    assert (clf.beam_, clf.temperature_) == (1, 1.0)


@cases
def test_what_was_found_is_there(case, fits):
    clf = fits[case]
    X, y = CASES[case]()
    assert clf.beam_ in (1, 2, 4, 8, 16)
    assert clf.temperature_ in (1.0, 2.0, 4.0)
    assert clf.leaf_loss_ in ("softmax", "hinge")
    assert clf.leaf_strength_ > 0.0
    assert all(0.0 <= entry["validation_error"] <= 1.0 for entry in clf.history_)
    errors = [entry["validation_error"] for entry in clf.history_]
    assert clf.best_round_ == int(np.argmin(errors))
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0, rtol=1e-5)
    assert set(clf.predict(X)) <= set(y)


@pytest.mark.parametrize("loss", ["softmax", "hinge"])
@cases
def test_the_loss_of_leaves_as_asked_for(case, loss):
    X, y = CASES[case]()
    clf = held_out(leaf_loss=loss, max_rounds=1).fit(X, y)
    assert clf.leaf_loss_ == loss
    assert clf.score(X, y) > 2.0 / np.unique(y).size


@cases
def test_limits_hold(case):
    X, y = CASES[case]()
    assert held_out(max_depth=3).fit(X, y).tree_.depth <= 3
    assert held_out(max_leaves=5).fit(X, y).tree_.n_leaves <= 5
    assert len(held_out(max_rounds=1).fit(X, y).history_) <= 2
    assert held_out(initial_depth=1, max_rounds=0).fit(X, y).tree_.depth <= 1
    assert held_out(initial_depth=0, max_rounds=0).fit(X, y).tree_.n_leaves == 1


def test_a_flat_start_that_was_asked_for_may_grow():
    assert held_out(initial_depth=0).fit(*grid()).tree_.n_leaves > 1


# -- decisions by the rows that are fitted ---------------------------------------------------------


@formats
def test_decisions_by_training_rows_look_for_nothing(kind):
    """Round 0 is then a tree of fixed depth, as it has ever been."""
    X, y = problem(kind=kind, spread=1.0)
    clf = held_out(decisions="training", max_rounds=0, max_sweeps=3, **PENALTIES).fit(X, y)
    assert not any(hasattr(clf, name) for name in FOUND)
    assert clf.history_[0]["validation_error"] is None
    fixed = quick(max_sweeps=3, beta=10.0, tol=1e-3, max_newton=20, leaf_classes=5).fit(X, y)
    assert_same_tree(clf.tree_, fixed.tree_)
    with pytest.raises(ValueError, match=r"beam='auto' is for .* give a number"):
        clf.freeze(beam="auto")


def test_growth_by_training_rows_obeys_the_tolerance():
    X, y = grid(300)
    strict = held_out(decisions="training", tolerance=0.0, max_rounds=3).fit(X, y)
    loose = held_out(decisions="training", tolerance=9.0, max_rounds=3).fit(X, y)
    assert strict.tree_.n_leaves < loose.tree_.n_leaves


@formats
def test_few_rows_decide_nothing(kind):
    """With too few rows to hold out, all are fitted, and the fit is that of training rows."""
    X, y = problem(kind=kind, n_rows=40)
    clf = held_out(max_rounds=1).fit(X, y)
    assert_same_model(clf, held_out(max_rounds=1, decisions="training").fit(X, y))
    assert clf.freeze(beam="auto").beam == 1
    clf.set_params(beam="auto").predict(X)


def test_the_share_of_the_judge_can_be_given(monkeypatch):
    shares = []
    hold_out = adaptive_tree.hold_out

    def watching(data, share, seed):
        shares.append(share)
        return hold_out(data, share, seed)

    monkeypatch.setattr(adaptive_tree, "hold_out", watching)
    held_out(validation_fraction=0.4, max_rounds=0).fit(*grid(200))
    assert shares == [0.4]


# -- a refit keeps no trace of an earlier one ------------------------------------------------------


def test_a_fit_forgets_what_an_earlier_one_found():
    """The second decides by training rows, and has looked for no beam."""
    clf = held_out(max_rounds=1).fit(*grid(200))
    clf.set_params(decisions="training").fit(*grid(200))
    assert not any(hasattr(clf, name) for name in FOUND)


# -- beams -----------------------------------------------------------------------------------------


@cases
def test_the_beam_that_was_found_is_a_beam(case, fits):
    clf, (X, _) = fits[case], CASES[case]()
    expected = clf.freeze().with_beam(clf.beam_, temperature=clf.temperature_)
    own = clf.freeze(beam="auto")
    assert (own.beam, own.temperature) == (expected.beam, expected.temperature)
    np.testing.assert_array_equal(own.predict_proba(X), expected.predict_proba(X))
    if clf.beam_ == 1:
        np.testing.assert_array_equal(own.predict(X), clf.predict(X))


@cases
@pytest.mark.parametrize("beam", [1, 3, "auto"])
def test_an_estimator_predicts_with_its_beam(case, beam, fits):
    clf, (X, _) = pickle.loads(pickle.dumps(fits[case])), CASES[case]()
    width = clf.beam_ if beam == "auto" else beam
    temperature = clf.temperature_ if beam == "auto" else 1.0
    expected = clf.freeze(beam=1).with_beam(width, temperature=temperature)
    clf.set_params(beam=beam)
    np.testing.assert_array_equal(clf.predict(X), expected.predict(X))
    np.testing.assert_array_equal(clf.predict_proba(X), expected.predict_proba(X))
    assert clf.freeze().beam == expected.beam


def test_a_beam_changes_no_tree():
    X, y = CASES["sparse"]()
    assert_same(held_out(beam="auto").fit(X, y), held_out(beam=4).fit(X, y))


@cases
def test_a_beam_is_not_worse_than_one_path_for_the_judge(case, monkeypatch):
    found = []
    trust = adapt.find_trust

    def watching(*arguments):
        found.append(trust(*arguments))
        return found[-1]

    monkeypatch.setattr(adapt, "find_trust", watching)
    clf = held_out().fit(*CASES[case]())
    (one,) = found
    assert (clf.beam_, clf.temperature_) == (one.beam, one.temperature)
    errors = {(beam, temperature): error for beam, temperature, error in one.errors}
    if clf.tree_.n_leaves == 1:
        assert one.beam == 1
        return
    alike = {b: e for (b, t), e in errors.items() if t == one.temperature or b == 1}
    least = min(alike.values())
    assert errors[one.beam, one.temperature] == least <= errors[1, 1.0]
    assert one.beam == min(beam for beam, error in alike.items() if error == least)
    assert one.beam == 1 or least <= 1.02 * min(errors.values())


# -- repetition ------------------------------------------------------------------------------------


@cases
def test_a_seed_repeats_the_model(case, fits):
    assert_same(held_out().fit(*CASES[case]()), fits[case])


@cases
def test_threads_change_no_bit(case, fits):
    assert_same(held_out(n_jobs=2).fit(*CASES[case]()), fits[case])


@cases
def test_row_order_does_not_matter(case, fits):
    X, y = CASES[case]()
    order = np.random.default_rng(0).permutation(y.size)
    assert_same(held_out().fit(X[order], y[order]), fits[case])


@cases
def test_weights_are_repetition(case):
    X, y = CASES[case]()
    times = np.random.default_rng(0).integers(1, 3, size=y.size)
    rows = np.repeat(np.arange(y.size), times)
    weighted = held_out(max_rounds=1).fit(X, y, sample_weight=times)
    assert_same(weighted, held_out(max_rounds=1).fit(X[rows], y[rows]))


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("decisions", "test"),
        ("decisions", None),
        ("leaf_loss", "log"),
        ("leaf_loss", None),
        ("beam", 0),
        ("beam", 1025),
        ("beam", 2.5),
        ("beam", "wide"),
        ("beam", None),
    ],
)
def test_parameters(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter"):
        held_out(**{name: value}).fit(*grid(60))


def test_other_trees_have_no_beam_of_their_own():
    clf = quick().fit(*problem())
    with pytest.raises(ValueError, match="this SoftmaxTreeClassifier has not looked for a beam"):
        clf.freeze(beam="auto")


@formats
def test_one_class(kind):
    X, _ = problem(kind=kind, n_rows=200)
    clf = held_out().fit(X, np.full(200, "only"))
    assert set(clf.predict(X)) == {"only"}


@formats
def test_rows_that_cannot_be_told_apart(kind):
    X = np.ones((300, 3))
    y = np.arange(300) % 5
    clf = held_out().fit(X if kind == "dense" else sp.csr_matrix(X), y)
    np.testing.assert_allclose(clf.predict_proba(X[:1]), 0.2, atol=0.02)


WAYS = {
    "without overlap": {"overlap": None},
    "monotone": {"overlap": None, "monotone": True},
    "depth 2": {"expansion_depth": 2},
    "drop": {"absent": "drop"},
    "zero_one": {"absent": "zero_one", "zero_probability": "none"},
    "one leaf": {"max_leaves": 1},
    "leaf penalty": {"leaf_ridge": 0.1},
    "router penalty": {"router_l1": 0.1},
    "random": {"init": "random"},
    "no time": {"max_seconds": 1e-6},
    "balanced": {"class_weight": "balanced"},
}


@cases
@pytest.mark.parametrize("way", WAYS)
def test_other_parameters_go_with_held_out_rows(case, way):
    X, y = CASES[case]()
    clf = held_out(**({"max_rounds": 1} | WAYS[way])).fit(X, y)
    assert clf.score(X, y) > 2.0 / np.unique(y).size
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0, rtol=1e-5)


@cases
def test_epsilon_is_tuned_on_the_rows_that_decide(case):
    X, y = CASES[case]()
    params = {"zero_probability": "epsilon", "max_rounds": 1}
    clf = held_out(validation_fraction=0.3, **params).fit(X, y)
    assert 0.0 < clf.epsilon_ <= 1.0
    given_one = held_out(validation_fraction=0.3, epsilon=0.01, **params).fit(X, y)
    assert given_one.epsilon_ == 0.01


@cases
def test_rows_without_weight_change_nothing(case):
    X, y = CASES[case]()
    weight = np.ones(y.size)
    weight[::4] = 0.0
    alive = np.flatnonzero(weight)
    a = held_out(max_rounds=1).fit(X, y, sample_weight=weight)
    assert_same(a, held_out(max_rounds=1).fit(X[alive], y[alive]))


# -- files -----------------------------------------------------------------------------------------


@cases
def test_a_file_keeps_what_was_found(case, fits, tmp_path):
    clf, (X, _) = fits[case], CASES[case]()
    path = tmp_path / "model.thinleaf"
    clf.save(path, trainable=True)
    again = thinleaf.load_estimator(path)
    assert_same(again, clf)
    a, b = (one.freeze(beam="auto") for one in (again, clf))
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@cases
def test_a_file_has_the_beam_of_the_estimator(case, fits, tmp_path):
    clf, (X, _) = pickle.loads(pickle.dumps(fits[case])), CASES[case]()
    clf.set_params(beam="auto").save(tmp_path / "model.thinleaf")
    model = thinleaf.load(tmp_path / "model.thinleaf")
    assert (model.beam, model.temperature) == (clf.beam_, clf.temperature_ if model.beam > 1 else 1)
    np.testing.assert_array_equal(model.predict(X), clf.predict(X))


# -- checkpoints and Ctrl-C ------------------------------------------------------------------------


@cases
def test_a_fit_that_was_killed_ends_with_the_same_model(case, fits, tmp_path):
    X, y = CASES[case]()
    whole = fits[case]
    for n_rounds in range(min(len(whole.history_), 3)):
        path = tmp_path / f"{n_rounds}.ckpt"
        fit_and_die(held_out(checkpoint=path), X, y, n_rounds)
        assert_same(held_out(checkpoint=path).fit(X, y), whole)
    fit_and_die(held_out(checkpoint=tmp_path / "sweep.ckpt"), X, y, -1, 1)
    assert_same(held_out(checkpoint=tmp_path / "sweep.ckpt").fit(X, y), whole)


@cases
def test_a_finished_fit_ends_the_same_way(case, fits, tmp_path):
    X, y = CASES[case]()
    for _ in range(2):
        assert_same(held_out(checkpoint=tmp_path / "tree.ckpt").fit(X, y), fits[case])


def test_a_flat_leaf_that_beat_a_grown_tree_does_not_grow_when_a_fit_goes_on(monkeypatch, tmp_path):
    """The tree loses to a flat leaf only after it was grown."""
    monkeypatch.setattr(candidates, "_MAY_CATCH_UP", np.inf)
    X, y = problem(1, spread=0.5, n_classes=7, n_rows=200)
    whole = held_out().fit(X, y)
    assert whole.tree_.n_leaves == 1
    for _ in range(2):
        assert_same(held_out(checkpoint=tmp_path / "tree.ckpt").fit(X, y), whole)


def test_a_flat_leaf_of_dense_rows_may_have_margins():
    """With few rows a class and many features, they may err less than likelihoods."""
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((12, 80))
    y, y_new = np.arange(300) % 12, np.arange(3000) % 12
    X, X_new = (centres[c] + 4.0 * rng.standard_normal((c.size, 80)) for c in (y, y_new))
    chosen, softmax = (held_out(leaf_loss=loss).fit(X, y) for loss in ("auto", "softmax"))
    assert chosen.tree_.n_leaves == softmax.tree_.n_leaves == 1
    assert chosen.leaf_loss_ == "hinge"
    assert chosen.score(X_new, y_new) >= softmax.score(X_new, y_new) - 0.01


@pytest.mark.parametrize(
    ("case", "nth", "given"), [("grid", 2, {}), ("sparse", 1, {"initial_depth": 0})]
)
def test_ctrl_c_in_an_expansion_keeps_the_tree_so_far(case, nth, given, monkeypatch, tmp_path):
    X, y = CASES[case]()
    expand_leaf, n = growth.expand_leaf, []

    def pressed(*arguments, **judging):
        n.append(1)
        if len(n) == nth:
            raise KeyboardInterrupt
        return expand_leaf(*arguments, **judging)

    monkeypatch.setattr(growth, "expand_leaf", pressed)
    path = tmp_path / "tree.ckpt"
    with pytest.warns(UserWarning, match="interrupted: growth ended in round 0"):
        clf = held_out(checkpoint=path, **given).fit(X, y)
    monkeypatch.undo()
    assert clf.ended_ == "interrupted"
    clf.tree_.validate()
    assert clf.score(X, y) > 2.0 / np.unique(y).size
    assert_same(held_out(checkpoint=path, **given).fit(X, y), held_out(**given).fit(X, y))


def n_sweeps(case: str) -> int:
    """Return how many sweeps, of whole trees and of replacements, a fit has."""
    with pytest.MonkeyPatch.context() as patch:
        presses = Pressing(patch)
        held_out(max_rounds=1).fit(*CASES[case]())
        return presses.n


class Pressing:
    """Presses Ctrl-C in a sweep."""

    def __init__(self, monkeypatch, at: int | None = None):
        self.at, self.n, self.sweep = at, 0, loop.sweep
        monkeypatch.setattr(loop, "sweep", self)

    def __call__(self, *arguments, **options):
        self.n += 1
        if self.n == self.at:
            raise KeyboardInterrupt
        return self.sweep(*arguments, **options)


@pytest.mark.parametrize("case", ["grid", "dense", "sparse", "words"])
def test_ctrl_c_ends_a_fit_wherever_it_is(case, monkeypatch):
    """Either nothing is there yet, or the tree so far is kept; and nothing is swept after it."""
    X, y = CASES[case]()
    total = n_sweeps(case)
    for at in sorted({1, 2, 3, total // 2, total - 1, total}):
        with pytest.MonkeyPatch.context() as patch:
            presses = Pressing(patch, at)
            clf = held_out(max_rounds=1)
            try:
                with pytest.warns(UserWarning, match="interrupted"):
                    clf.fit(X, y)
            except KeyboardInterrupt:
                assert not hasattr(clf, "tree_")
            else:
                assert clf.ended_ == "interrupted"
                assert clf.predict(X).shape == y.shape
            assert presses.n == at, "it goes on"
