"""Checkpoints: a fit that was killed ends with the same tree, and a file is whole or not there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import load, save
from sklearn.base import clone

from tests.estimator_cases import adaptive, assert_same_model, assert_same_tree, formats, problem
from tests.strategies import blobs
from thinleaf import ModelFileError
from thinleaf.arrays.files import read_arrays, write_arrays
from thinleaf.softmaxtree.growth.checkpoint import Checkpoint, fingerprint
from thinleaf.softmaxtree.growth.expand import Grown

WAYS = {
    "plain": {},
    "validation": {"validation_fraction": 0.3},
    "threads": {"n_jobs": 2, "validation_fraction": 0.3},
    "without overlap": {"overlap": None, "n_jobs": 2, "expansion_depth": 2},
}
ways = pytest.mark.parametrize("way", WAYS)


class Killed(BaseException):
    """The process is gone."""


def fit_and_die(clf, X, y, n_rounds: int, n_sweeps: int = 0) -> None:
    """Fit, but die right after the checkpoint of a round is written, or of a sweep of the next."""
    save = Checkpoint.save

    def save_and_die(self, grown: Grown, entropy: int) -> None:
        save(self, grown, entropy)
        swept = 0 if grown.sweeps is None else len(grown.sweeps.best.history)
        if (len(grown.history) - 1, swept) == (n_rounds, n_sweeps):
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_die)
        with pytest.raises(Killed):
            clf.fit(X, y)


def case(kind: str = "dense"):
    return problem(0, kind=kind, spread=1.0, n_classes=8, n_rows=160)


def files(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def rounds_in(path: Path) -> int:
    return len(read_arrays(path)[1]["history"]) - 1


# -- going on --------------------------------------------------------------------------------------


@formats
@ways
def test_a_fit_that_was_killed_ends_with_the_same_model(kind, way, tmp_path):
    X, y = problem(0, kind=kind, spread=1.0)
    params = {"max_rounds": 2} | WAYS[way]
    whole = adaptive(**params).fit(X, y)
    assert whole.n_iter_ == 2
    for n_rounds in range(3):
        path = tmp_path / f"{n_rounds}.ckpt"
        fit_and_die(adaptive(checkpoint=path, **params), X, y, n_rounds)
        assert rounds_in(path) == n_rounds
        assert_same_model(adaptive(checkpoint=path, **params).fit(X, y), whole)
        assert rounds_in(path) == 2


@formats
@ways
def test_a_fit_that_was_killed_within_a_round_ends_with_the_same_model(kind, way, tmp_path):
    X, y = problem(0, kind=kind, spread=1.0)
    params = {"max_rounds": 1, "max_sweeps": 3} | WAYS[way]
    whole = adaptive(**params).fit(X, y)
    for n_rounds in (-1, 0):
        for n_sweeps in range(1, len(whole.history_[n_rounds + 1]["sweeps"]) + 1):
            path = tmp_path / f"{n_rounds} {n_sweeps}.ckpt"
            fit_and_die(adaptive(checkpoint=path, **params), X, y, n_rounds, n_sweeps)
            assert len(read_arrays(path)[1]["sweeps"]["history"]) == n_sweeps
            on = adaptive(checkpoint=path, **params).fit(X, y)
            assert_same_model(on, whole)
            assert [len(r["sweeps"]) for r in on.history_] == [
                len(r["sweeps"]) for r in whole.history_
            ]


def test_the_best_sweep_survives(tmp_path):
    """Without overlap an earlier sweep may be the best one."""
    X, y = case()
    path = tmp_path / "tree.ckpt"
    params = {"max_rounds": 0, "overlap": None, "max_sweeps": 9}
    whole = adaptive(**params).fit(X, y)
    kept = min(r["objective"] for r in whole.history_[0]["sweeps"])
    for n_sweeps in range(1, len(whole.history_[0]["sweeps"]) + 1):
        path.unlink(missing_ok=True)
        fit_and_die(adaptive(checkpoint=path, **params), X, y, -1, n_sweeps)
        on = adaptive(checkpoint=path, **params).fit(X, y)
        assert_same_model(on, whole)
        assert min(r["objective"] for r in on.history_[0]["sweeps"]) == kept


def test_a_fit_that_was_killed_again_and_again(tmp_path):
    X, y = case()
    path = tmp_path / "tree.ckpt"
    for n_rounds in range(3):
        fit_and_die(adaptive(checkpoint=path), X, y, n_rounds - 1, 1)
        fit_and_die(adaptive(checkpoint=path), X, y, n_rounds - 1, 2)
        fit_and_die(adaptive(checkpoint=path), X, y, n_rounds)
    assert_same_model(adaptive(checkpoint=path).fit(X, y), adaptive().fit(X, y))


def test_a_checkpoint_changes_nothing(tmp_path):
    X, y = case()
    path = tmp_path / "tree.ckpt"
    assert_same_model(adaptive(checkpoint=str(path)).fit(X, y), adaptive().fit(X, y))
    assert files(tmp_path) == ["tree.ckpt"]


def test_it_is_written_after_each_sweep_and_round(tmp_path, monkeypatch):
    X, y = case()
    path = tmp_path / "tree.ckpt"
    written = []

    def spying(target, arrays, metadata):
        write_arrays(target, arrays, metadata)
        sweeps = read_arrays(path)[1]["sweeps"]
        written.append((rounds_in(path), 0 if sweeps is None else len(sweeps["history"])))

    monkeypatch.setattr("thinleaf.softmaxtree.growth.checkpoint.write_arrays", spying)
    clf = adaptive(checkpoint=path).fit(X, y)
    expected = []
    for number, record in enumerate(clf.history_):
        expected += [(number - 1, sweep + 1) for sweep in range(len(record["sweeps"]))]
        expected.append((number, 0))
    assert written == expected


def as_first_format(content: bytes) -> bytes:
    """Return a checkpoint as it was written when there was one after rounds alone."""
    return with_metadata(content, format="thinleaf checkpoint 1", sweeps=None)


def test_a_checkpoint_of_the_first_format_goes_on(content, tmp_path):
    path = tmp_path / "tree.ckpt"
    path.write_bytes(as_first_format(content))
    assert "sweeps" not in read_arrays(path)[1]
    assert_same_model(adaptive(checkpoint=path).fit(*case()), adaptive().fit(*case()))


@formats
def test_raising_a_limit_goes_on(kind, tmp_path):
    X, y = case(kind)
    path = tmp_path / "tree.ckpt"
    params = {"validation_fraction": 0.3, "patience": 9}
    for max_rounds in (0, 2, 4):
        on = adaptive(checkpoint=path, max_rounds=max_rounds, **params).fit(X, y)
        assert_same_model(on, adaptive(max_rounds=max_rounds, **params).fit(X, y))


def test_a_limit_that_was_passed_ends_at_once(tmp_path):
    X, y = case()
    path = tmp_path / "tree.ckpt"
    long = adaptive(checkpoint=path).fit(X, y)
    for limit in ({"max_rounds": 1}, {"max_leaves": 5}, {"max_seconds": 1e-9}):
        again = adaptive(checkpoint=path, **{"max_rounds": None} | limit).fit(X, y)
        assert again.ended_ == next(iter(limit)).removeprefix("max_")
        assert_same_tree(again.tree_, long.tree_)
    assert rounds_in(path) == 3


def test_the_best_round_survives(tmp_path):
    """Validation errors are those of the history, also for a best round before the break."""
    X, y = problem(3, spread=1.5, n_classes=8, n_rows=200)
    params = {"validation_fraction": 0.4, "patience": 2, "max_rounds": 12, "tolerance": 1.3}
    whole = adaptive(**params).fit(X, y)
    assert whole.best_round_ < whole.n_iter_
    path = tmp_path / "tree.ckpt"
    fit_and_die(adaptive(checkpoint=path, **params), X, y, whole.n_iter_ - 1)
    assert_same_model(adaptive(checkpoint=path, **params).fit(X, y), whole)


def test_a_finished_fit_ends_the_same_way(tmp_path):
    X, y = case()
    params = {"max_rounds": None, "tolerance": 0.8, "overlap": None}
    path = tmp_path / "tree.ckpt"
    whole = adaptive(checkpoint=path, **params).fit(X, y)
    assert whole.ended_ == "no leaf expands"
    assert_same_model(adaptive(checkpoint=path, **params).fit(X, y), whole)


# -- seeds -----------------------------------------------------------------------------------------


def test_without_a_seed_the_stored_one_goes_on(tmp_path):
    X, y = case()
    path = tmp_path / "tree.ckpt"
    params = {"init": "random_median", "validation_fraction": 0.3, "patience": 9}
    half = adaptive(checkpoint=path, random_state=None, max_rounds=1, **params).fit(X, y)
    seed = read_arrays(path)[1]["entropy"]
    on = adaptive(checkpoint=path, random_state=None, **params).fit(X, y)
    assert on.history_[:2] == half.history_
    assert read_arrays(path)[1]["entropy"] == seed
    state = adaptive(checkpoint=path, random_state=np.random.RandomState(5), **params).fit(X, y)
    assert_same_model(state, on)
    assert_same_model(on, adaptive(random_state=seed, **params).fit(X, y))


def test_another_seed_is_refused(tmp_path):
    X, y = case()
    path = tmp_path / "tree.ckpt"
    adaptive(checkpoint=path, max_rounds=1).fit(X, y)
    with pytest.raises(ValueError, match=r"tree\.ckpt is of random_state=0, not 1: .*delete"):
        adaptive(checkpoint=path, random_state=1).fit(X, y)
    adaptive(checkpoint=path, random_state=np.int64(0)).fit(X, y)


# -- other fits ------------------------------------------------------------------------------------

OTHER_PARAMS = {
    "contraction": 0.6,
    "tolerance": 1.1,
    "initial_contraction": 0.5,
    "initial_depth": 1,
    "expansion_depth": 2,
    "init": "random",
    "max_sweeps": 4,
    "expansion_sweeps": 2,
    "router_l1": 0.1,
    "leaf_ridge": 0.7,
    "absent": "zero_one",
    "beta": 3.0,
    "overlap": None,
    "tol": 1e-2,
    "validation_fraction": 0.2,
    "class_weight": "balanced",
}


@pytest.mark.parametrize("name", OTHER_PARAMS)
def test_other_parameters_are_refused(name, tmp_path):
    X, y = case()
    X, y = X[1:], y[1:]  # classes of unequal size
    path = tmp_path / "tree.ckpt"
    adaptive(checkpoint=path, max_rounds=0).fit(X, y)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"tree\.ckpt is of a fit with other data or parameters"):
        adaptive(checkpoint=path, **{name: OTHER_PARAMS[name]}).fit(X, y)
    assert path.read_bytes() == before


def test_other_data_are_refused(tmp_path):
    X, y = case()
    names = np.array(list("abcdefgh"))
    moved = X.copy()
    moved[7, 2] += 1e-3
    swapped = y.copy()
    swapped[0] = (swapped[0] + 1) % 8
    path = tmp_path / "tree.ckpt"
    adaptive(checkpoint=path, max_rounds=0).fit(X, y)
    for other, weight in (
        ((moved, y), None),
        ((X, swapped), None),
        ((X[:-1], y[:-1]), None),
        ((X, names[y]), None),
        ((sp.csr_matrix(X), y), None),
        ((X, y), np.linspace(1.0, 2.0, y.size)),
    ):
        with pytest.raises(ValueError, match="is of a fit with other data or parameters"):
            adaptive(checkpoint=path).fit(*other, sample_weight=weight)


def test_columns_without_entries_are_other_data(tmp_path):
    X, y = case("csr")
    path = tmp_path / "tree.ckpt"
    adaptive(checkpoint=path, max_rounds=0).fit(X, y)
    wider = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], X.shape[1] + 1))
    with pytest.raises(ValueError, match="is of a fit with other data or parameters"):
        adaptive(checkpoint=path).fit(wider, y)


def test_the_same_data_in_another_order_go_on(tmp_path):
    X, y = case()
    path = tmp_path / "tree.ckpt"
    adaptive(checkpoint=path, max_rounds=1).fit(X, y)
    order = np.random.default_rng(0).permutation(y.size)
    on = adaptive(checkpoint=path).fit(X[order], y[order])
    assert_same_model(on, adaptive().fit(X, y))


def test_what_does_not_shape_the_tree_may_change(tmp_path, capsys):
    X, y = case()
    path = tmp_path / "tree.ckpt"
    adaptive(checkpoint=path, max_rounds=1).fit(X, y)
    moved = tmp_path / "other name"
    path.rename(moved)
    on = adaptive(checkpoint=moved, n_jobs=2, verbose=1, patience=1, max_depth=99).fit(X, y)
    assert_same_model(on, adaptive().fit(X, y))


def test_class_weights_of_any_key(tmp_path):
    X, y = case()
    path = tmp_path / "tree.ckpt"
    weights = {label: 1.0 + label for label in np.unique(y)}
    params = {"class_weight": weights, "checkpoint": path}
    adaptive(max_rounds=1, **params).fit(X, y)
    on = adaptive(**params).fit(X, y)
    assert_same_model(on, adaptive(class_weight=weights).fit(X, y))
    with pytest.raises(ValueError, match="is of a fit with other data or parameters"):
        adaptive(checkpoint=path, class_weight=weights | {0: 9.0}).fit(X, y)


def test_fingerprints_tell_data_and_parameters_apart():
    prints = {
        fingerprint(data, parameters)
        for data in (blobs(0), blobs(1), blobs(0, weighted=True), blobs(0, kind="csr"))
        for parameters in ({}, {"a": 1}, {"a": 2}, {"b": 1}, {"a": None})
    }
    assert len(prints) == 20
    assert fingerprint(blobs(0), {"a": 1, "b": 2}) == fingerprint(blobs(0), {"b": 2, "a": 1})


# -- broken files ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("checkpoint") / "tree.ckpt"
    adaptive(checkpoint=path, max_rounds=1).fit(*case())
    return path.read_bytes()


def json_of(content: bytes) -> dict:
    length = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["thinleaf"])


def with_metadata(content: bytes, **changes) -> bytes:
    """Return a checkpoint whose metadata says something else, or no longer something."""
    metadata = {k: v for k, v in (json_of(content) | changes).items() if v is not None}
    return save(load(content), {"thinleaf": json.dumps(metadata)})


def with_arrays(content: bytes, **changes) -> bytes:
    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + length])["__metadata__"]
    arrays = load(content) | {name.replace("__", "."): value for name, value in changes.items()}
    return save({k: v for k, v in arrays.items() if v is not None}, metadata)


BROKEN = {
    "empty": lambda c: b"",
    "one byte": lambda c: c[:1],
    "header cut": lambda c: c[:100],
    "half": lambda c: c[: len(c) // 2],
    "last byte missing": lambda c: c[:-1],
    "one byte more": lambda c: c + b"\0",
    "text": lambda c: b"once upon a time, there was a tree",
    "zeros": lambda c: bytes(len(c)),
    "garbage": lambda c: np.random.default_rng(0).bytes(5000),
    "huge header": lambda c: (2**62).to_bytes(8, "little") + c[8:],
    "other tensors": lambda c: save({"w": np.ones(3)}),
    "metadata no JSON": lambda c: save({"w": np.ones(3)}, {"thinleaf": "{"}),
    "metadata no object": lambda c: save({"w": np.ones(3)}, {"thinleaf": "[]"}),
    "no format": lambda c: with_metadata(c, format=None),
    "other format": lambda c: with_metadata(c, format="thinleaf checkpoint 3"),
    "no fit": lambda c: with_metadata(c, fit=None),
    "no entropy": lambda c: with_metadata(c, entropy=None),
    "no history": lambda c: with_metadata(c, history=[]),
    "other history": lambda c: with_metadata(c, history=[{"sweeps": []}]),
    "no number": lambda c: with_metadata(c, n_features="many"),
    "too few features": lambda c: with_metadata(c, n_features=1),
    "best is missing": lambda c: with_metadata(c, own_best=True),
    "no children": lambda c: with_arrays(c, tree__children=None),
    "no tree": lambda c: with_arrays(c, tree__children=np.zeros((3, 2), np.int32)),
    "not finite": lambda c: with_arrays(c, tree__bias=load(c)["tree.bias"] * np.nan),
    "no limits": lambda c: with_arrays(c, leaf_limits=None),
    "few limits": lambda c: with_arrays(c, leaf_limits=np.ones(1, np.int32)),
    "no sweeps": lambda c: with_metadata(c, sweeps={"history": [], "best_sweep": 0}),
    "no losses": lambda c: with_metadata(
        c,
        sweeps={
            "history": json_of(c)["history"][0]["sweeps"][:1],
            "best_sweep": 1,
            "effort": [0] * 3,
        },
    ),
    "few prints": lambda c: with_arrays(c, solved__prints=np.zeros((0, 16), np.uint8)),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_file_is_named_and_left(how, content, tmp_path):
    path = tmp_path / "tree.ckpt"
    broken = BROKEN[how](content)
    path.write_bytes(broken)
    with pytest.raises(ModelFileError, match=r"cannot be read: .*; delete .*tree\.ckpt to start"):
        adaptive(checkpoint=path).fit(*case())
    assert path.read_bytes() == broken
    path.unlink()
    adaptive(checkpoint=path, max_rounds=0).fit(*case())


def test_every_cut_of_a_file_is_noticed(content, tmp_path):
    path = tmp_path / "tree.ckpt"
    for at in np.random.default_rng(0).integers(0, len(content), size=50):
        path.write_bytes(content[:at])
        with pytest.raises(ModelFileError, match=r"tree\.ckpt"):
            read_arrays(path)


def test_a_whole_file_goes_on(content, tmp_path):
    path = tmp_path / "tree.ckpt"
    path.write_bytes(content)
    assert_same_model(adaptive(checkpoint=path).fit(*case()), adaptive().fit(*case()))


# -- writing ---------------------------------------------------------------------------------------


def test_arrays_and_metadata_come_back(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "floats": rng.standard_normal((3, 4)).astype(np.float32),
        "turned": rng.standard_normal((3, 4)).T,
        "none": np.empty((0, 2), np.int32),
        "bytes": rng.integers(256, size=7).astype(np.uint8),
    }
    metadata = {"text": "naïve ½", "numbers": [1, 2.5, 1e-300, None, True], "deep": {"a": {}}}
    path = tmp_path / "file"
    write_arrays(path, arrays, metadata)
    found, said = read_arrays(path)
    assert said == metadata
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


@pytest.mark.parametrize("fails", ["replace", "fsync"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, Killed])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(fails, error, tmp_path, monkeypatch):
    path = tmp_path / "tree.ckpt"
    write_arrays(path, {"a": np.arange(3)}, {"version": 1})
    before = path.read_bytes()

    def fail(*args):
        raise error("disk full")

    monkeypatch.setattr(os, fails, fail)
    with pytest.raises(error, match="disk full"):
        write_arrays(path, {"a": np.arange(4)}, {"version": 2})
    assert path.read_bytes() == before
    assert files(tmp_path) == ["tree.ckpt"]


def test_at_no_moment_is_the_file_incomplete(tmp_path, monkeypatch):
    """Until the new file is whole on the disk, the old one stands under the name."""
    path = tmp_path / "tree.ckpt"
    write_arrays(path, {"a": np.arange(3)}, {"version": 1})
    seen = []
    fsync, move = os.fsync, os.replace

    def look(step, then):
        def stand_in(*args):
            seen.append((step, read_arrays(path)[1]["version"]))
            if step == "replace":
                assert read_arrays(Path(args[0]))[1] == {"version": 2}
            then(*args)

        return stand_in

    monkeypatch.setattr(os, "fsync", look("fsync", fsync))
    monkeypatch.setattr(os, "replace", look("replace", move))
    write_arrays(path, {"a": np.arange(4)}, {"version": 2})
    assert seen == [("fsync", 1), ("replace", 1)]
    assert read_arrays(path)[1] == {"version": 2}


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_arrays(tmp_path / "file", {}, {"a": float("nan")})
    assert files(tmp_path) == []


def test_a_missing_directory_is_told_before_training(tmp_path, monkeypatch):
    def no_training(*args, **options):
        raise AssertionError("training has begun")

    monkeypatch.setattr("thinleaf.estimators.adaptive_tree.grow", no_training)
    clf = adaptive(checkpoint=tmp_path / "no such directory" / "tree.ckpt")
    with pytest.raises(ValueError, match=r"no such directory.*does not exist: create it first"):
        clf.fit(*case())


def test_a_path_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clf = adaptive(checkpoint="tree.ckpt", max_rounds=0)
    clf.fit(*case())
    assert files(tmp_path) == ["tree.ckpt"]
    assert clone(clf).get_params()["checkpoint"] == "tree.ckpt"


# -- a process that is killed ----------------------------------------------------------------------

CHILD = """
import sys
from tests.estimator_cases import adaptive
from tests.softmaxtree.test_checkpoint import LONG, long_case
adaptive(checkpoint=sys.argv[1], **LONG).fit(*long_case())
"""
ROOT = Path(__file__).parents[2]
LONG = {"max_rounds": 6, "max_sweeps": 5, "tolerance": 1.2}


def long_case():
    return problem(1, spread=1.2, n_classes=12, n_rows=600)


def test_a_killed_process_leaves_a_file_to_go_on_from(tmp_path):
    path = tmp_path / "tree.ckpt"
    rng = np.random.default_rng()  # any moment will do
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], cwd=ROOT)
    until = time.monotonic() + 120.0
    while child.poll() is None and not path.exists() and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(float(rng.uniform(0.0, 1.0)))
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=60)
    assert -1 <= rounds_in(path) <= 6  # -1: within the first
    expected = adaptive(**LONG).fit(*long_case())
    assert_same_model(adaptive(checkpoint=path, **LONG).fit(*long_case()), expected)
