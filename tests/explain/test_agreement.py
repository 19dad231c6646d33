from __future__ import annotations

from thinleaf.explain.agreement import plot_agreement


def text(kind, agreement, *, unlike=False):
    return {
        "kind": kind, "agreement": agreement, "standard_error": 0.01, "top5_recall": 0.9,
        "unlike": unlike,
    }  # fmt: skip


def test_each_text_has_two_bars_and_strange_ones_a_star():
    texts = [text("novels", 0.98), text("code", 0.6, unlike=True)]
    ax = plot_agreement({"expected": 0.97, "texts": texts})
    assert [label.get_text() for label in ax.get_xticklabels()] == ["novels", "code *"]
    assert sorted(bar.get_height() for bar in ax.patches) == [0.6, 0.9, 0.9, 0.98]
    assert any(line.get_linestyle() == "--" for line in ax.lines)


def test_no_line_is_drawn_where_nothing_is_expected():
    again = plot_agreement({"expected": None, "texts": [text("a", 1.0)]})
    assert not any(line.get_linestyle() == "--" for line in again.lines)
