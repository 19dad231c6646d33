"""Committed results are whole, and the page is what the script makes of them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from benchmarks import _report, run_all
from benchmarks.papers._section import Check, lower_error
from benchmarks.peers import with_front

JSON = sorted(path.stem for path in _report.RESULTS.glob("*.json"))


@pytest.mark.parametrize("name", JSON)
def test_markdown_and_json_say_the_same(name):
    page = (_report.RESULTS / f"{name}.md").read_text(encoding="utf-8")
    assert _report.read(name).markdown() == page


def test_a_result_is_read_as_it_was_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_report, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["x", "--data", "/somewhere/else", "--seeds", "3"])
    table = _report.table(["", "error %", "rows"], [["tree", 12.25, 4000], ["flat", "failed", ""]])
    _report.write("kind", "A title", "A text.", table, suffix="letter")
    result = _report.read("kind_letter")
    assert result.command == "python -m benchmarks.kind --data DATA --seeds 3"
    assert result.parts == ["A text.", table]
    assert result.tables[0].rows == [["tree", 12.25, 4000], ["flat", "failed", ""]]
    (tmp_path / "kind_letter.json").unlink()
    parsed = _report.read("kind_letter")
    assert parsed == result
    assert parsed.tables[0].rows == result.tables[0].rows
    assert "somewhere" not in capsys.readouterr().out


def test_the_page_is_made_from_the_committed_results():
    pytest.importorskip("torch")
    page = pytest.importorskip("benchmarks.papers.page")
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), (
        "docs/results.md is out of date: run python -m benchmarks.papers.page"
    )


def test_the_front_is_what_nothing_beats():
    points = [(3.0, 500.0), (4.0, 1.0), (4.0, 2.0), (20.0, 0.5), (3.0, 600.0), (4.0, 1.0)]
    rows = [[f"system {i}", *point] for i, point in enumerate(points)]
    rows.append(["a system", "failed: MemoryError", ""])
    assert [row[-1] for row in with_front(rows)] == ["yes", "yes", "", "yes", "", "yes", ""]


def test_a_difference_within_its_standard_error_is_not_reproduced():
    assert lower_error("", "", 10.0, 12.0, 10_000).holds
    close = lower_error("", "", 10.0, 10.3, 10_000)
    assert not close.holds
    assert "standard error" in close.verdict
    assert lower_error("", "", 12.0, 10.0, 10_000, "known").verdict == "not reproduced: known"
    assert Check("", "so", "1", False).verdict == "not reproduced: the reason is not known"


def test_all_benchmarks_that_are_run_together_exist():
    assert all(find_spec(f"benchmarks.{module}") for module, _, _ in run_all.BENCHMARKS)
