"""Runs that a result has are not run again, and constants that scripts change are there."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from benchmarks import _records, _report, decisions
from benchmarks._records import Kept


def test_a_script_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_report, "RESULTS", tmp_path)
    monkeypatch.setattr(_records, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["x", "--data", "d"])
    assert _records.known("some") == []
    records = [{"set": "a", "seed": 0, "error %": 2.5}, {"set": "a", "seed": 1, "error %": 3.5}]
    columns = ["set", "seed", "error %"]
    summary = _records.means(records, ["set"], ["error %"], ["error %"])
    assert summary.headers == ["set", "seeds", "error %", "± seeds: error %"]
    assert summary.rows == [["a", 2, 3.0, pytest.approx(0.5)]]
    _report.write("some", "A title", summary, _records.all_runs(records, columns))
    capsys.readouterr()
    assert _records.known("some") == records
    wanted = [{"set": name, "seed": seed} for name in "ab" for seed in (0, 1)]
    assert list(_records.missing(records, iter(wanted), None)) == wanted[2:]
    assert list(_records.missing(records, iter(wanted), 0.0)) == []
    assert "run it again" in capsys.readouterr().out


def test_one_seed_has_no_standard_error():
    assert _records.standard_error([1.0]) == ""
    assert _records.standard_error([1.0, 3.0]) == pytest.approx(1.0)


@pytest.mark.parametrize("variant", decisions.VARIANTS)
def test_constants_that_are_changed_exist(variant):
    for name in decisions.VARIANTS[variant]:
        if ":" in name:
            module, attribute = name.split(":")
            assert hasattr(importlib.import_module(module), attribute), name


def test_parts_that_are_kept_are_not_run_again(tmp_path, capsys):
    path, runs = tmp_path / "state", []

    def rows(name, n):
        runs.append(name)
        yield from ([name, i, np.float64(0.5)] for i in range(n))

    for _ in range(2):  # another process
        kept = Kept(path)
        assert kept.rows(("set", 0), rows, "a", 2) == [["a", 0, 0.5], ["a", 1, 0.5]]
        assert kept.rows(("set", 1), rows, "b", 0) == []
    assert runs == ["a", "b"]
    assert capsys.readouterr().out.count("['a', ") == 2
    path.write_text(path.read_text() + '\n[["set", "2"], [["c", 0')  # it was stopped while writing
    assert Kept(path).rows(("set", 2), rows, "c", 1) == [["c", 0, 0.5]]
    assert Kept(path).rows(("set", 2), rows, "d", 1) == [["c", 0, 0.5]]
    assert len(Kept(None).rows(("set", 0), rows, "e", 3)) == 3
