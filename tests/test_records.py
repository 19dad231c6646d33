"""Runs that a result has are not run again, and constants that scripts change are there."""

from __future__ import annotations

import importlib

import pytest

from benchmarks import _records, _report, decisions


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
