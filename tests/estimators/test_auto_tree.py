"""Fits to a budget: what is chosen, that budgets are kept, and that a seed decides."""

from __future__ import annotations

import pickle
import signal
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from tests.estimator_cases import assert_same_tree, formats, problem
from thinleaf import (
    AdaptiveSoftmaxTreeClassifier,
    AutoTreeClassifier,
    TextClassifier,
    load,
    load_estimator,
)
from thinleaf.estimators._auto import contenders, search
from thinleaf.estimators._auto.deadline import Clock, Deadline
from thinleaf.estimators._auto.judge import Deployment, Judge
from thinleaf.estimators._auto.raw_texts import texts_of_rows
from thinleaf.kernels._notice import NOTICE
from thinleaf.labeltree.frozen import FrozenLabelTree
from thinleaf.model.variant import Variant


def case(kind="dense", n_rows=600):
    return problem(1, kind=kind, n_classes=8, n_rows=n_rows, spread=1.0)


def auto(**options):
    return AutoTreeClassifier(**({"max_trees": 2, "random_state": 0} | options))


@pytest.fixture(scope="module", params=["dense", "csr"])
def fitted(request):
    X, y = case(request.param)
    return auto().fit(X, y), X, y


def test_what_is_found_is_told(fitted):
    clf, X, y = fitted
    chosen = clf.frontier_.chosen
    assert chosen in clf.frontier_.points
    assert {p.source for p in clf.frontier_} >= {"tree", "forest"}
    assert any(p.source == "tree" and p.variant == Variant() for p in clf.frontier_)
    assert all(p.us > 0 and p.bytes > 0 for p in clf.frontier_)
    for words in ("Trained: the default adaptive tree", f"Chosen: {chosen.name}", "held-out"):
        assert words in clf.why_
    assert clf.decided_by_time_ is None
    np.testing.assert_array_equal(clf.predict(X), clf.freeze().predict(X))
    assert clf.score(X, y) > 0.4
    assert chosen.all_rows
    assert chosen.bytes == clf.freeze().file_bytes


def test_the_default_tree_is_the_default_tree(fitted):
    clf, X, y = fitted
    default = AdaptiveSoftmaxTreeClassifier(random_state=0).fit(X, y)
    assert_same_tree(clf._searched["tree"][1].tree_, default.tree_)


def test_no_model_with_more_errors_than_the_default_is_chosen(fitted):
    clf, _, _ = fitted
    default = next(p for p in clf.frontier_ if p.source == "tree" and p.variant == Variant())
    assert clf.frontier_.chosen.error <= default.error


def test_a_seed_gives_the_same_model(fitted):
    clf, X, y = fitted
    again = clone(clf).fit(X, y)
    assert again.frontier_.chosen.name == clf.frontier_.chosen.name
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    errors = {(p.source, p.variant): p.error for p in clf.frontier_}
    assert errors == {(p.source, p.variant): p.error for p in again.frontier_}


def test_other_budgets_from_the_same_fit(fitted):
    clf, X, _ = fitted
    least = min(p.bytes for p in clf.frontier_)
    small = clf.at(max_bytes=1.2 * least)
    assert small.file_bytes <= 1.2 * least
    small.predict(X)
    assert clf.at().file_bytes > 0
    with pytest.raises(ValueError, match="the nearest is"):
        clf.at(max_bytes=10)


@formats
def test_bytes_are_kept_exactly(kind, tmp_path):
    X, y = case(kind)
    size = AdaptiveSoftmaxTreeClassifier(random_state=0).fit(X, y).freeze().file_bytes
    clf = auto(max_bytes=0.9 * size).fit(X, y)
    clf.save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_size == clf.frontier_.chosen.bytes <= 0.9 * size
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), clf.predict(X))


@formats
def test_bytes_are_also_kept_when_time_is_up(kind, monkeypatch):
    X, y = case(kind)
    monkeypatch.setattr(search.Search, "_late", lambda _: True)
    default = AdaptiveSoftmaxTreeClassifier(random_state=0).fit(X, y).freeze()
    small = (default.file_bytes + default.quantized("int8").file_bytes) // 2
    clf = auto(max_bytes=small, max_trees=1).fit(X, y)
    assert clf.freeze().file_bytes == clf.frontier_.chosen.bytes <= small


def test_a_budget_that_cannot_be_kept_names_the_nearest_model():
    X, y = case()
    clf = auto(max_trees=1)
    with pytest.raises(ValueError, match=r"no model keeps 1e-06 µs and 50 bytes. The nearest is"):
        clf.set_params(max_us=1e-6, max_bytes=50).fit(X, y)
    assert not hasattr(clf, "model_")


class FakeTimes:
    """Times that say what a test wants, and count nothing."""

    def __init__(self, monkeypatch, us):
        monkeypatch.setattr(Deployment, "us", lambda _, model, careful=False: us(model))


def test_time_decides_and_can_be_repeated(monkeypatch):
    X, y = case()
    FakeTimes(monkeypatch, lambda model: float(model.n_trees * model.beam))
    clf = auto(max_us=2.5).fit(X, y)
    chosen = clf.frontier_.chosen
    assert chosen.variant.n_trees * chosen.variant.beam <= 2
    assert clf.decided_by_time_["chosen"]["source"] == chosen.source
    FakeTimes(monkeypatch, lambda model: 1000.0)
    again = auto(max_us=2.5, repeat=clf.decided_by_time_).fit(X, y)
    assert again.frontier_.chosen.variant == chosen.variant
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    with pytest.raises(ValueError, match="decided_by_time_"):
        auto(repeat={"rows": 1.0}).fit(X, y)


def test_one_path_alone_is_fast_enough(monkeypatch):
    X, y = case()
    FakeTimes(monkeypatch, lambda model: float(model.n_trees * model.beam))
    clf = auto(max_us=1.2).fit(X, y)
    assert clf.frontier_.chosen.us == 1.0
    assert "next better" in clf.why_ or "No model" in clf.why_


def test_seconds_that_are_up_leave_the_best_so_far():
    X, y = case("csr", 400)
    clf = auto(max_fit_seconds=0.5).fit(X, y)
    assert set(clf.predict(X)) <= set(y)
    assert clf.decided_by_time_ is not None


def test_a_deadline_before_there_is_a_tree_still_gives_one(monkeypatch):
    X, y = case()
    fit = AdaptiveSoftmaxTreeClassifier.fit
    fired = []

    class Late(Deadline):
        def __init__(self, seconds):
            super().__init__(float("inf"))

    def interrupted(self, *args):
        if not fired and self._watch is not None:
            fired.append(late[0])
            late[0].fired = True
            raise KeyboardInterrupt
        return fit(self, *args)

    late = []

    def make(seconds):
        late.append(Late(seconds))
        return late[-1]

    monkeypatch.setattr(contenders, "Deadline", make)
    monkeypatch.setattr(AdaptiveSoftmaxTreeClassifier, "fit", interrupted)
    clf = auto().fit(X, y)
    assert fired
    assert clf.score(X, y) > 0.3
    assert list(clf._searched) == ["tree"]


def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    X, y = case()

    def pressed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(contenders.Trainer, "forest", pressed)
    with pytest.warns(UserWarning, match="interrupted: the best model so far"):
        clf = auto().fit(X, y)
    assert "forest" not in clf._searched
    assert clf.score(X, y) > 0.5
    monkeypatch.setattr(contenders.Trainer, "tree", pressed)
    with pytest.raises(KeyboardInterrupt):
        auto().fit(X, y)


def test_fewer_rows_where_time_is_short(monkeypatch):
    from thinleaf.estimators import auto_tree

    X, y = case()
    monkeypatch.setattr(auto_tree, "seconds_of_rows", lambda *_: 1000.0)
    clf = auto(max_fit_seconds=700.0).fit(X, y)
    assert clf.decided_by_time_["rows"] < 0.6
    assert "For want of time" in clf.why_
    again = auto(repeat=clf.decided_by_time_).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


@pytest.mark.parametrize("metric", ["top3_error", "log_loss"])
def test_metrics(metric):
    X, y = case("csr")
    clf = auto(metric=metric, max_trees=1).fit(X, y)
    assert clf.frontier_.metric == metric
    assert metric in clf.why_


def test_a_metric_of_ones_own():
    X, y = case()
    names = np.array([f"c{i}" for i in y])
    seen = []

    def cost(truth, predicted):
        seen.append((truth.dtype.kind, predicted.dtype.kind))
        return float(np.mean(truth != predicted)) * 2.0

    clf = auto(metric=cost, max_trees=1).fit(X, names)
    assert set(seen) == {("U", "U")}
    assert clf.frontier_.metric == "metric"
    with pytest.raises(ValueError, match="metric must be"):
        auto(metric="accuracy").fit(X, y)


@pytest.mark.parametrize("value", ["much", float("nan"), None])
def test_a_metric_must_be_a_number(value):
    with pytest.raises(ValueError, match="metric must return a number"):
        auto(metric=lambda *_: value, max_trees=1).fit(*case(n_rows=100))


def test_budgets_of_other_models_are_checked(fitted):
    clf, _, _ = fitted
    for name in ("max_us", "max_bytes"):
        with pytest.raises(ValueError, match=f"{name} must be above 0, got -1"):
            clf.at(**{name: -1})
        with pytest.raises(ValueError, match=rf"no model keeps {name}=1e-09: the nearest"):
            clf.at(**{name: 1e-9})


def test_files_and_pickles_give_it_back(fitted, tmp_path):
    clf, X, _ = fitted
    clf.save(tmp_path / "model", trainable=True)
    again = load_estimator(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.why_ == clf.why_
    assert again.frontier_.points == clf.frontier_.points
    with pytest.raises(ValueError, match="holds the chosen model alone"):
        again.at(max_us=1e9)
    copied = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copied.predict(X), clf.predict(X))


def test_freezing_with_other_weights(fitted):
    clf, X, _ = fitted
    other = clf.freeze(weights="int8", beam=2)
    assert other.packed.weights == "int8"
    other.predict(X)


def test_few_rows_are_enough():
    X, y = problem(0, n_rows=40)
    clf = auto().fit(X, y)
    assert "too few" in clf.why_
    assert clf.frontier_.chosen.source == "tree"


def test_frames_keep_their_names():
    import pandas as pd

    X, y = case(n_rows=200)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    clf = auto(max_trees=1).fit(frame, y)
    assert clf.freeze().feature_names == list(frame.columns)


def test_scikit_learn_accepts_it():
    check_estimator(AutoTreeClassifier(max_trees=1, random_state=0))


# -- texts -----------------------------------------------------------------------------------------


def texts(n=400):
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(60)])
    labels = rng.integers(8, size=n)
    made = [
        " ".join([*rng.choice(words[6 * c : 6 * c + 8], 4), *rng.choice(words, 2)]) for c in labels
    ]
    return made, np.array([f"c{i}" for i in labels])


def test_a_budget_of_texts_is_that_of_the_file(tmp_path):
    X, y = texts()
    free = TextClassifier("auto", features="words", random_state=0).fit(X, y)
    limit = 0.9 * free.freeze().file_bytes
    clf = TextClassifier("auto", features="words", max_bytes=limit, random_state=0).fit(X, y)
    assert clf.rejection_ is not None
    clf.save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_size <= limit
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), clf.predict(X))
    assert clf.at(max_bytes=2 * limit).predict_one(X[0]) in set(y)
    clf.save(tmp_path / "model", trainable=True)
    np.testing.assert_array_equal(load_estimator(tmp_path / "model").predict(X), clf.predict(X))
    pickle.loads(pickle.dumps(clf)).predict(X[:2])


def test_a_budget_of_texts_that_cannot_be_kept_is_said_as_it_was_given():
    X, y = texts()
    clf = TextClassifier("auto", features="words", max_bytes=100, random_state=0)
    with pytest.raises(ValueError, match=r"no model keeps 100 bytes.*ask for max_bytes=\d{4}"):
        clf.fit(X, y)


def test_a_label_tree_on_the_texts_is_among_the_candidates(monkeypatch, tmp_path):
    X, y = texts()
    slow, fast = 9.0, 2.0
    FakeTimes(monkeypatch, lambda model: fast if isinstance(model, FrozenLabelTree) else slow)
    clf = TextClassifier("auto", max_us=5.0, random_state=0).fit(X, y)
    inner = clf.model_
    assert inner.frontier_.chosen.source == "label tree"
    assert "a label tree on the raw texts" in inner.why_
    assert isinstance(clf.freeze(), FrozenLabelTree)
    assert clf.rejection_ is not None
    assert clf.score(X, y) > 0.5
    clf.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), load_estimator(tmp_path / "model")):
        np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    tree = clf.at(max_us=20.0)
    assert not isinstance(tree, FrozenLabelTree)
    assert tree.predict_one(X[0]) in set(y)
    assert clf.explain(X[0]).label == clf.predict_one(X[0])
    with pytest.raises(ValueError, match="a label tree was chosen"):
        clf.freeze(weights="int8")
    copied = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copied.predict_proba(X[:9]), clf.predict_proba(X[:9]))
    model = AutoTreeClassifier(max_us=5.0, random_state=0, repeat=inner.decided_by_time_)
    again = TextClassifier(model, random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_a_label_tree_does_not_take_the_place_of_the_default_tree_by_chance(monkeypatch):
    X, y = texts()
    FakeTimes(monkeypatch, lambda model: 1.0)
    clf = TextClassifier("auto", rejection=False, random_state=0).fit(X, y)
    errors = {(p.source, p.variant): p.error for p in clf.model_.frontier_}
    assert ("label tree", Variant()) in errors
    assert clf.model_.frontier_.chosen.error <= errors[search.DEFAULT]
    assert clf.model_.frontier_.chosen.source != "label tree"


def test_features_that_are_given_leave_no_label_tree():
    X, y = texts(200)
    clf = TextClassifier("auto", features="words", rejection=False, random_state=0).fit(X, y)
    assert "label tree" not in {p.source for p in clf.model_.frontier_}


def test_a_label_tree_that_is_too_large_is_not_trained_further(monkeypatch):
    monkeypatch.setattr(contenders, "_LEAST_RUNG", 100)
    X, y = texts()
    free = TextClassifier("auto", rejection=False, random_state=0).fit(X, y)
    sizes = {p.source: p.bytes for p in free.model_.frontier_ if p.variant == Variant()}
    limit = sizes["tree"] + 1000
    assert limit < sizes["label tree"] / 4
    clf = TextClassifier("auto", rejection=False, max_bytes=limit, random_state=0).fit(X, y)
    assert "label tree: no better" in clf.model_.why_


def test_rows_know_their_texts():
    made = ["a b", "b a c", "a b", "c d", "a b"]
    X = sp.csr_matrix(np.array([[1, 1, 0], [1, 1, 2], [1, 1, 0], [0, 0, 3], [1, 1, 0]], np.float32))
    y = np.array([0, 1, 0, 1, 1])
    data = AdaptiveSoftmaxTreeClassifier()._read(X, y, np.array([1.0, 1.0, 1.0, 1.0, 0.0]))[0]
    found = texts_of_rows(made, X, y, data, np.unique(y))
    by_class = sorted(zip(data.y.tolist(), found.tolist(), data.weight.tolist(), strict=True))
    assert by_class == [(0, "a b", 2.0), (1, "b a c", 1.0), (1, "c d", 1.0)]


def test_budgets_are_for_auto():
    with pytest.raises(ValueError, match="max_us: a budget is for model='auto'"):
        TextClassifier(max_us=3.0).fit(*texts(40))


# -- parts -----------------------------------------------------------------------------------------


def test_a_deadline_waits_while_kernels_are_compiled(monkeypatch):
    compiled = threading.Event()
    monkeypatch.setattr(type(NOTICE), "is_compiling", property(lambda _: not compiled.is_set()))
    threading.Timer(0.1, compiled.set).start()
    with pytest.raises(KeyboardInterrupt), Deadline(0.0):
        threading.Event().wait(5.0)
    assert compiled.is_set()


def test_a_deadline_interrupts_and_then_leaves_alone():
    deadline = Deadline(0.01)
    with pytest.raises(KeyboardInterrupt), deadline:
        threading.Event().wait(5.0)
    assert deadline.fired
    with Deadline(100.0) as other:
        pass
    assert not other.fired
    with Deadline(float("inf")) as never:
        assert never._timer is None


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_a_deadline_that_is_over_before_it_begins_interrupts_once(seconds):
    deadline = Deadline(seconds)
    with pytest.raises(KeyboardInterrupt), deadline:
        threading.Event().wait(5.0)
    assert deadline.fired
    threading.Event().wait(0.02)


@pytest.mark.parametrize("over", [False, True])
def test_no_time_for_rejection_leaves_the_model(monkeypatch, over):
    from thinleaf.estimators import text_classifier

    class Pressed(Deadline):
        def __enter__(self):
            self.fired = over
            raise KeyboardInterrupt

    X, y = texts(200)
    monkeypatch.setattr(text_classifier, "Deadline", Pressed)
    reason = "max_fit_seconds are over" if over else "interrupted"
    with pytest.warns(UserWarning, match=f"{reason}: it is not known when to reject"):
        clf = TextClassifier(features="words", random_state=0).fit(X, y)
    assert clf.rejection_ is None
    assert clf.score(X, y) > 0.5


def test_a_deadline_also_interrupts_where_ctrl_c_is_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt), Deadline(0.01):
            threading.Event().wait(5.0)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_clock_without_a_limit_has_all_the_time():
    assert Clock(None).left == float("inf")
    clock = Clock(100.0)
    assert 0.0 <= clock.elapsed < 100.0
    assert clock.left <= 100.0


def test_a_judge_knows_classes_that_a_model_does_not():
    X, y = case()
    clf = AdaptiveSoftmaxTreeClassifier(random_state=0).fit(X[y != 3], y[y != 3])
    trainer_data = AdaptiveSoftmaxTreeClassifier()._read(sp.csr_matrix(X).toarray(), y, None)[0]
    judge = Judge(trainer_data, np.unique(y), "error", 1)
    score = judge(clf.freeze())
    assert score.value >= np.mean(y == 3)
    assert not judge.surely_less(score, score, 0.5)


def test_limits_are_rounded_up():
    assert search._up(1.234) == 1.3
    assert search._up(123.4) == 130.0


def cut_short(monkeypatch):
    """Return a fit whose last fit of a forest is ended at once."""
    X, y = case()
    more = contenders.Trainer._more

    def slow(self, data, begin, end, first):
        if data is self.data:
            raise KeyboardInterrupt
        return more(self, data, begin, end, first)

    monkeypatch.setattr(contenders.Trainer, "_more", slow)
    monkeypatch.setattr(search, "_SURE", -100.0)  # so that a forest is chosen if it is the best
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return auto().fit(X, y)


def test_a_last_fit_that_is_cut_short_leaves_a_model_of_all_rows(monkeypatch):
    monkeypatch.setattr(search, "FEWER_ROWS", 0.0)  # no other one may take its place
    clf = cut_short(monkeypatch)
    assert clf.frontier_.chosen.all_rows
    assert clf.frontier_.chosen.source != "forest"


def test_a_forest_may_have_some_trees_of_fewer_rows(monkeypatch):
    monkeypatch.setattr(search, "FEWER_ROWS", 1.0)
    clf = cut_short(monkeypatch)
    assert clf.frontier_.chosen.source == "forest"
    assert not clf.frontier_.chosen.all_rows
    trees = clf._searched["forest"][0].estimators_
    assert len(trees) == clf.at().n_trees == 2
    assert_same_tree(trees[0].tree_, clf._searched["tree"][1].tree_)


def test_trees_that_are_there_when_time_is_up_are_a_forest(monkeypatch):
    X, y = case()
    more = contenders.Trainer._more

    def slow(self, data, begin, end, first):
        if begin >= 2:
            deadlines[-1].fired = True
            raise KeyboardInterrupt
        return more(self, data, begin, end, first)

    class Quiet(Deadline):
        def __init__(self, seconds):
            super().__init__(float("inf"))
            deadlines.append(self)

    deadlines = []
    monkeypatch.setattr(search, "Deadline", Quiet)
    monkeypatch.setattr(contenders.Trainer, "_more", slow)
    clf = auto(max_trees=8).fit(X, y)
    assert max(p.variant.n_trees for p in clf.frontier_) == 3


def test_the_front_has_all_rows_where_time_is_left():
    X, y = case("csr")
    clf = auto(max_fit_seconds=300.0, max_bytes=1e9).fit(X, y)
    assert all(p.all_rows for p in clf.frontier_.front())
    for p in clf.frontier_.front():
        assert clf.at(max_bytes=p.bytes).file_bytes <= p.bytes


def test_other_budgets_also_prefer_the_default_to_noise(fitted):
    clf, _, _ = fitted
    default = next(p for p in clf.frontier_ if (p.source, p.variant) == search.DEFAULT)
    noise = replace(default, source="flat", error=default.error, bytes=default.bytes + 1)
    assert search.preferred([noise, default], set(), lambda p: p.error) == default
    better = replace(noise, error=0.5 * default.error)
    assert search.preferred([default, better], set(), lambda p: p.error) == default
    sure = {(better.source, better.variant)}
    assert search.preferred([default, better], sure, lambda p: p.error) == better
    assert search.expected(default) < default.error
