"""Ctrl-C: a fit ends with what it has, says so, and leaves the checkpoint of a whole round."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.estimator_cases import (
    adaptive,
    assert_same_model,
    assert_same_tree,
    formats,
    problem,
    quick,
    untimed,
)
from thinleaf.arrays.files import read_arrays
from thinleaf.softmaxtree.growth import checkpoint, expand
from thinleaf.softmaxtree.tao import loop, overlap
from thinleaf.softmaxtree.tao import sweep as sweeps

N_ROWS = 160


def case(kind: str = "dense"):
    return problem(0, kind=kind, spread=1.0, n_classes=8, n_rows=N_ROWS)


class Pressing:
    """Presses Ctrl-C in a sweep: of the whole tree, or of a replacement."""

    def __init__(self, monkeypatch, *, whole: int | None = None, local: int | None = None):
        self.at = {"whole": whole, "local": local}
        self.n = {"whole": 0, "local": 0}
        self.sweep = loop.sweep
        monkeypatch.setattr(loop, "sweep", self)

    def __call__(self, tree, data, *args, **options):
        which = "whole" if data.n_rows == N_ROWS else "local"
        self.n[which] += 1
        if self.n[which] == self.at[which]:
            raise KeyboardInterrupt
        return self.sweep(tree, data, *args, **options)


def assert_usable(clf, X, y) -> None:
    clf.tree_.validate()
    assert set(clf.predict(X)) <= set(y)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0, rtol=1e-5)
    assert clf.n_iter_ >= 0


def assert_same_but_for_the_end(clf, other) -> None:
    """Equal to a fit of as many sweeps, which says that it ended for another reason."""
    assert clf.ended_ == "interrupted"
    clf.ended_ = other.ended_
    assert_same_model(clf, other)


# -- a tree of fixed depth -------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("at", [2, 3])
def test_a_fit_keeps_the_sweeps_before(kind, at, monkeypatch):
    X, y = case(kind)
    Pressing(monkeypatch, whole=at)
    with pytest.warns(UserWarning, match=f"interrupted: the tree of sweep {at - 1} is kept"):
        clf = quick().fit(X, y)
    monkeypatch.undo()
    assert_usable(clf, X, y)
    assert_same_but_for_the_end(clf, quick(max_sweeps=at - 1).fit(X, y))


@pytest.mark.parametrize("make", [quick, adaptive], ids=["fixed", "adaptive"])
def test_before_the_first_sweep_is_complete_there_is_nothing_to_keep(make, monkeypatch):
    X, y = case()
    Pressing(monkeypatch, whole=1)
    clf = make()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert not hasattr(clf, "tree_")


def test_in_the_middle_of_a_sweep(monkeypatch):
    """Half of the nodes are new: their tree is thrown away."""
    X, y = case()
    fit_router, n = sweeps.fit_router, []

    def pressed(*args):
        n.append(1)
        if len(n) == 5:  # three routers a sweep
            raise KeyboardInterrupt
        return fit_router(*args)

    monkeypatch.setattr(sweeps, "fit_router", pressed)
    with pytest.warns(UserWarning, match="sweep 1 is kept"):
        clf = quick().fit(X, y)
    monkeypatch.undo()
    assert_same_but_for_the_end(clf, quick(max_sweeps=1).fit(X, y))


def test_a_warm_start_keeps_the_model_that_it_began_with(monkeypatch):
    X, y = case()
    clf = quick(warm_start=True).fit(X, y)
    before = clf.predict_proba(X)
    Pressing(monkeypatch, whole=1)
    with pytest.warns(UserWarning, match="sweep 0 is kept"):
        clf.fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_between_two_sweeps(monkeypatch):
    X, y = case()
    monkeypatch.setattr(loop, "_record", pressed_at(loop._record, 3))
    with pytest.warns(UserWarning, match="sweep 2 is kept"):
        clf = quick().fit(X, y)
    monkeypatch.undo()
    assert_same_but_for_the_end(clf, quick(max_sweeps=2).fit(X, y))


def pressed_at(function, at: int):
    """Return a function that presses Ctrl-C in its n-th call."""
    n = []

    def stand_in(*args, **options):
        n.append(1)
        if len(n) == at:
            raise KeyboardInterrupt
        return function(*args, **options)

    return stand_in


def test_in_a_thread_of_many(monkeypatch):
    X, y = case()
    monkeypatch.setattr(overlap, "router_scores", pressed_at(overlap.router_scores, 5))
    with pytest.warns(UserWarning, match="is kept"):
        clf = quick(n_jobs=2).fit(X, y)
    assert_usable(clf, X, y)


# -- a growing tree --------------------------------------------------------------------------------


@formats
@pytest.mark.parametrize("n_sweeps", [1, 2])
def test_in_the_initial_fit(kind, n_sweeps, monkeypatch, tmp_path):
    X, y = case(kind)
    path = tmp_path / "tree.ckpt"
    Pressing(monkeypatch, whole=n_sweeps + 1)
    with pytest.warns(UserWarning, match="interrupted: growth ended in round 0"):
        clf = adaptive(checkpoint=path).fit(X, y)
    monkeypatch.undo()
    assert_usable(clf, X, y)
    assert clf.ended_ == "interrupted"
    assert not path.exists()  # no round is complete
    expected = adaptive(max_rounds=0, max_sweeps=n_sweeps).fit(X, y)
    assert_same_tree(clf.tree_, expected.tree_)
    assert untimed(clf.history_) == untimed(expected.history_)


@formats
@pytest.mark.parametrize("n_sweeps", [0, 1, 2])
def test_in_a_sweep_of_a_round(kind, n_sweeps, monkeypatch, tmp_path):
    X, y = case(kind)
    path = tmp_path / "tree.ckpt"
    whole = adaptive().fit(X, y)
    before = sum(len(record["sweeps"]) for record in whole.history_[:2])
    Pressing(monkeypatch, whole=before + n_sweeps + 1)
    with pytest.warns(UserWarning, match="interrupted: growth ended in round 2"):
        clf = adaptive(checkpoint=path).fit(X, y)
    monkeypatch.undo()
    assert_usable(clf, X, y)
    assert (clf.ended_, clf.n_iter_, clf.best_round_) == ("interrupted", 2, 2)
    assert untimed(clf.history_[:2]) == untimed(whole.history_[:2])
    last = clf.history_[-1]
    assert len(last["sweeps"]) == n_sweeps
    assert untimed(last["sweeps"]) == untimed(whole.history_[2]["sweeps"][:n_sweeps])
    assert last["train_error"] == pytest.approx(1.0 - clf.score(X, y), abs=1e-9)
    assert last["n_leaves"] == clf.tree_.n_leaves > clf.history_[1]["n_leaves"]
    assert len(read_arrays(path)[1]["history"]) == 2  # of the last complete round
    assert_same_model(adaptive(checkpoint=path).fit(X, y), whole)


@formats
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("local", [1, 5])
def test_in_an_expansion(kind, n_jobs, local, monkeypatch, tmp_path):
    """In any of its sweeps, the first or a later one, growth ends: not only the attempt."""
    X, y = case(kind)
    path = tmp_path / "tree.ckpt"
    pressing = Pressing(monkeypatch, local=local)
    with pytest.warns(UserWarning, match="interrupted: growth ended in round 0"):
        clf = adaptive(checkpoint=path, n_jobs=n_jobs).fit(X, y)
    monkeypatch.undo()
    assert pressing.n["whole"] == 3
    assert_usable(clf, X, y)
    assert clf.ended_ == "interrupted"
    expected = adaptive(max_rounds=0).fit(X, y)
    assert_same_tree(clf.tree_, expected.tree_)
    assert untimed(clf.history_) == untimed(expected.history_)
    on = adaptive(checkpoint=path, max_rounds=1).fit(X, y)
    assert_same_model(on, adaptive(max_rounds=1).fit(X, y))


def test_the_best_round_so_far_is_kept(monkeypatch):
    X, y = problem(3, spread=1.5, n_classes=8, n_rows=200)
    params = {"validation_fraction": 0.4, "patience": 9, "max_rounds": 4, "tolerance": 1.3}
    whole = adaptive(**params).fit(X, y)
    errors = [record["validation_error"] for record in whole.history_]
    assert len(set(errors)) > 1
    monkeypatch.setattr(expand, "within_limit", pressed_at(expand.within_limit, 3))
    with pytest.warns(UserWarning, match="ended in round 2"):
        clf = adaptive(**params).fit(X, y)
    monkeypatch.undo()
    assert clf.best_round_ == int(np.argmin(errors[:3]))
    assert_same_tree(clf.tree_, adaptive(**params | {"max_rounds": 2}).fit(X, y).tree_)


@pytest.mark.parametrize("step", ["write_arrays", "asdict"])
def test_while_a_checkpoint_is_written(step, monkeypatch, tmp_path):
    X, y = case()
    path = tmp_path / "tree.ckpt"
    at = 2 if step == "write_arrays" else 3  # one record, then two
    monkeypatch.setattr(checkpoint, step, pressed_at(getattr(checkpoint, step), at))
    with pytest.warns(UserWarning, match="interrupted: growth ended in round 1"):
        clf = adaptive(checkpoint=path).fit(X, y)
    monkeypatch.undo()
    assert_usable(clf, X, y)
    assert len(read_arrays(path)[1]["history"]) == 1
    assert os.listdir(tmp_path) == ["tree.ckpt"]
    assert_same_model(adaptive(checkpoint=path).fit(X, y), adaptive().fit(X, y))


def test_a_fit_that_was_not_interrupted_does_not_warn():
    X, y = case()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick().fit(X, y)
        adaptive().fit(X, y)


# -- a real one ------------------------------------------------------------------------------------

CHILD = """
import warnings
from tests.estimator_cases import adaptive, problem

X, y = problem(1, spread=1.5, n_classes=20, n_rows=3000, n_features=20)
warnings.simplefilter("always")
clf = adaptive(max_rounds=None, max_sweeps=50, tolerance=9.0, verbose=1).fit(X, y)
clf.tree_.validate()
print(clf.ended_, len(clf.history_), (clf.predict(X) == y).mean() > 0.2)
"""


def test_a_real_signal_ends_a_fit_with_a_model():
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert any("round 0  " in line for line in iter(child.stderr.readline, ""))
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0, err
    ended, n_rounds, predicts = out.split()
    assert (ended, predicts) == ("interrupted", "True")
    assert int(n_rounds) >= 1
    assert "interrupted: growth ended in round" in err
