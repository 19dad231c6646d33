"""Turns: what one process makes, the others wait for, but not for ever."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from thinleaf.kernels import _turns
from thinleaf.kernels._turns import Turn

pytest.importorskip("fcntl")

HOLD = """
import sys
from thinleaf.kernels._turns import Turn
turn = Turn(sys.argv[1], "kernel")
turn.take()
print("taken", flush=True)
sys.stdin.readline()
turn.give_back()
print("given back", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def other(tmp_path):
    """Start a process that has a turn until it is told to give it back."""
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], **pipe)
    assert process.stdout.readline() == "taken\n"
    yield process
    process.kill()
    process.wait()


def seconds_of(turn: Turn) -> float:
    began = time.monotonic()
    turn.take()
    return time.monotonic() - began


def test_it_is_waited_for_and_had_once_it_is_given_back(other, tmp_path, monkeypatch):
    monkeypatch.setattr(_turns, "_PATIENCE", 0.2)
    turn = Turn(str(tmp_path), "kernel")
    assert seconds_of(turn) >= 0.2
    assert not turn._is_held
    with Turn(str(tmp_path), "another kernel") as free:
        assert free._is_held
    other.stdin.write("\n")
    other.stdin.flush()
    assert other.stdout.readline() == "given back\n"
    monkeypatch.undo()
    turn.take()
    assert turn._is_held
    turn.give_back()
    assert not turn._is_held


def test_a_process_that_dies_gives_it_back(other, tmp_path):
    other.kill()
    other.wait()
    with Turn(str(tmp_path), "kernel") as turn:
        assert turn._is_held


def test_without_a_directory_nobody_waits(tmp_path):
    assert seconds_of(Turn(str(tmp_path / "none"), "kernel")) < 5.0


ROUTE = """
import numpy as np
from thinleaf.kernels._jit import compiled_signatures
from thinleaf.model.routing import route
from thinleaf.model.tree import Tree
route(Tree.complete(1, n_features=3, n_classes=2), np.ones((5, 3), np.float32))
print(*compiled_signatures())
"""


@pytest.mark.compiles
def test_of_processes_that_begin_together_one_compiles(tmp_path):
    """What Ray's workers do on a machine whose cache is empty."""
    options = {"env": os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}, "text": True}
    processes = [
        subprocess.Popen([sys.executable, "-c", ROUTE], stdout=subprocess.PIPE, **options)
        for _ in range(2)
    ]
    found = [process.communicate(timeout=120)[0].split() for process in processes]
    assert sorted(found) == [["0", "1"], ["1", "0"]]
