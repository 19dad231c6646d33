"""A process says once that it compiles; with a warm cache, nothing."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from thinleaf.kernels import _notice
from thinleaf.kernels._notice import VARIABLE, Notice, silence

COMPILE = """
from thinleaf.kernels import _notice
_notice.PATIENCE = 0.0
import numba
@numba.njit
def of_the_user(x):
    return x + 1
of_the_user(1)
import sys
print("theirs", file=sys.stderr)
from thinleaf.kernels.softmax import exp32
exp32(1.0), exp32(2), print("done")
"""


def run(cache, code: str = COMPILE, **environment: str) -> tuple[str, str]:
    outside = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env=outside | {"NUMBA_CACHE_DIR": str(cache)} | environment,
    )
    return done.stdout, done.stderr


def test_a_process_that_compiles_says_so_once(tmp_path):
    out, err = run(tmp_path)
    assert out == "done\n"
    first, line = err.splitlines()
    assert first == "theirs"  # what users compile is theirs to announce
    assert line.startswith("thinleaf: compiling for this machine")
    assert "`thinleaf warmup` does it ahead" in line
    assert run(tmp_path) == ("done\n", "theirs\n")


@pytest.mark.parametrize("how", ["variable", "level"])
def test_it_can_be_told_to_be_silent(how, tmp_path):
    quiet = "import logging; logging.getLogger('thinleaf').setLevel('ERROR')"
    code = COMPILE if how == "variable" else quiet + COMPILE
    variables = {VARIABLE: "0"} if how == "variable" else {}
    assert run(tmp_path, code, **variables) == ("done\n", "theirs\n")


@pytest.fixture
def notice(monkeypatch, caplog) -> Notice:
    monkeypatch.delenv(VARIABLE)
    caplog.set_level(logging.WARNING, logger="thinleaf")
    return Notice()


def compile_for(notice: Notice, monkeypatch, seconds: list[float], module: str = "thinleaf.x"):
    """Compile functions of so many seconds, one after the other, each with one within."""
    clock = [0.0]
    monkeypatch.setattr(_notice.time, "perf_counter", lambda: clock[0])
    function = SimpleNamespace(py_func=SimpleNamespace(__module__=module))
    inner = SimpleNamespace(py_func=SimpleNamespace(__module__="numba.y"))
    for duration in seconds:
        notice.on_start(SimpleNamespace(data={"dispatcher": function}))
        clock[0] += duration / 2
        notice.on_start(SimpleNamespace(data={"dispatcher": inner}))
        notice.on_end(SimpleNamespace(data={"dispatcher": inner}))
        clock[0] += duration / 2
        notice.on_end(SimpleNamespace(data={"dispatcher": function}))
        clock[0] += 100.0  # between them, nothing is compiled


def test_short_compilations_are_not_worth_a_word(notice, monkeypatch, caplog):
    compile_for(notice, monkeypatch, [0.3, 0.3, 0.3])
    assert not caplog.records


def test_several_short_ones_add_up(notice, monkeypatch, caplog):
    compile_for(notice, monkeypatch, [0.3] * 9)
    assert len(caplog.records) == 1
    assert caplog.records[0].name == "thinleaf"


def test_a_long_one_is_noticed_while_it_lasts(notice, monkeypatch, caplog):
    said = []
    monkeypatch.setattr(notice, "_look", lambda: said.append(notice._depth))
    compile_for(notice, monkeypatch, [60.0])
    assert said == [1, 2, 2, 1]


def test_what_users_compile_does_not_count(notice, monkeypatch, caplog):
    compile_for(notice, monkeypatch, [60.0], module="mine")
    assert not caplog.records


def test_without_a_cache_it_says_what_to_do(notice, monkeypatch, caplog):
    notice.is_cached = False
    compile_for(notice, monkeypatch, [60.0])
    assert "set NUMBA_CACHE_DIR" in caplog.text


def test_a_warm_up_says_nothing(monkeypatch, caplog):
    monkeypatch.setattr(_notice.NOTICE, "is_silent", False)
    with silence():
        compile_for(_notice.NOTICE, monkeypatch, [60.0])
    assert not caplog.records
    assert not _notice.NOTICE.is_silent
