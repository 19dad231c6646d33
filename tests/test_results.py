"""Committed results are whole, and the page is what the script makes of them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from benchmarks import _report, adaptive_sets, letter, peers, run_all
from benchmarks.papers import paper000_figure3
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


def test_what_is_named_default_has_the_defaults():
    """In the settings of the scripts, and in the rows of the results that they have written."""
    for name, variants in (adaptive_sets.SETTINGS | peers.SETTINGS).items():
        named = {variant for variant in variants if variant.startswith("default")}
        assert all(variants[variant] == {} for variant in named), name
        for result in (f"peers_{name}", f"adaptive_sets_{name}"):
            if (_report.RESULTS / f"{result}.md").exists():
                rows = [row[0] for row in _report.read(result).tables[0].rows]
                assert named or not any(row.startswith("AST, default") for row in rows), result


def test_figure_3_says_why_the_leaves_of_clinc150_have_one_depth():
    """Three rounds from depth 2 give 32 leaves of depth 5 only if every attempt is accepted."""
    (row,) = _report.read(paper000_figure3.RESULT).tables[0].rows
    assert row[:2] == [5, 32]
    verdicts = paper000_figure3.section().verdicts()
    assert "every leaf was expanded in every round" in verdicts
    assert "no leaf" not in verdicts


def test_a_recall_tree_learns_in_logarithmic_time_and_predicts_in_more():
    """What the documents say of ``online_growth``."""
    (part,) = _report.read("online_growth").tables
    per_bit = {name: [row[part.headers.index(f"{name} / log₂ K")] for row in part.rows]
               for name in ("learning", "one prediction")}  # fmt: skip
    assert max(per_bit["learning"]) < 1.2 * min(per_bit["learning"])
    assert 1.9 < per_bit["one prediction"][-1] / per_bit["one prediction"][0] < 2.1


def test_the_softmax_trees_of_the_results_have_a_ridge_and_no_overlap():
    """So they are not trained as in the papers, which have neither a ridge nor so small a β."""
    assert letter.SETTINGS["overlap"] is None
    assert letter.SETTINGS["router_ridge"] > 0 < letter.SETTINGS["leaf_ridge"]
    assert letter.SETTINGS["beta"] == 10.0


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
