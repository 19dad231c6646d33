"""An evaluation as a page: one file without network, for light and dark screens.

The page's frame and its few lines of code are in ``evaluation_page.html`` and ``.js`` beside this
module. Whatever comes from data is escaped, and the page forbids itself to load anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from thinleaf.arrays.replace import replace_file

if TYPE_CHECKING:
    from thinleaf.measuring.confusions import ConfusedPair, Example
    from thinleaf.measuring.evaluation import Evaluation

MOST_LABELS = 20_000
"""Rows of the page's table of labels."""

_N_STATIC = 50
_N_UNKNOWN = 100
_HEADS = ("label", "precision", "recall", "F1", "rows", "predicted", "right")


def write_page(evaluation: Evaluation, path: str | os.PathLike[str], title: str) -> None:
    """Write the page; a file of that name is replaced."""
    with replace_file(path) as temporary:
        temporary.write_text(page(evaluation, title), encoding="utf-8", errors="replace")


def page(evaluation: Evaluation, title: str) -> str:
    """Return the page."""
    script = _asset("evaluation_page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rows, labels_note = _labels(evaluation)
    parts = {
        "title": escape(title),
        "script": script,
        "script_hash": f"sha256-{digest}",
        "tiles": _tiles(evaluation),
        "reliability_note": _reliability_note(evaluation),
        "reliability_svg": _reliability_svg(evaluation),
        "selection_svg": _selection_svg(evaluation),
        "labels_note": labels_note,
        "label_heads": "".join(
            f'<th scope="col"><button type="button">{head}</button></th>' for head in _HEADS
        ),
        "label_rows": "".join(map(_label_row, rows[:_N_STATIC])),
        "pairs_note": _pairs_note(evaluation),
        "pair_rows": "".join(_pair_row(pair, evaluation.unit) for pair in evaluation.pairs),
        "unknown": _unknown(evaluation),
        "data": _script_json(rows),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda m: parts[m[1]], _asset("evaluation_page.html"))


def _asset(name: str) -> str:
    return files("thinleaf.measuring").joinpath(name).read_text(encoding="utf-8")


def _script_json(value: Any) -> str:
    """Return JSON that cannot end the element that it stands in."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


# -- figures ---------------------------------------------------------------------------------------


def _tiles(evaluation: Evaluation) -> str:
    macro, weighted = evaluation.labels.macro, evaluation.labels.weighted
    parts = "(precision {0.precision:.3f}, recall {0.recall:.3f})"
    shown = [
        (f"{evaluation.rows:,}", "rows"),
        (_percent(evaluation.error), "error"),
        (_percent(evaluation.top_k_error), f"top-{evaluation.top_k} error"),
        (f"{macro.f1:.3f}", f"macro F1 {parts.format(macro)}"),
        (f"{weighted.f1:.3f}", f"weighted F1 {parts.format(weighted)}"),
        (_percent(evaluation.reliability.ece), "expected calibration error"),
        (f"{evaluation.reliability.brier:.4f}", "Brier score of the label given"),
        (_number(evaluation.perplexity), "perplexity"),
        (_percent(evaluation.coverage), "coverage: rows whose leaves hold their label"),
        (f"{evaluation.unknown_rows:,}", "rows whose label the model does not know"),
        (f"{evaluation.us_per_row:.2f} µs", "a row, in batches"),
    ]
    return "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for value, name in shown
    )


def _reliability_note(evaluation: Evaluation) -> str:
    gap, largest = evaluation.reliability.ece, evaluation.reliability.mce
    surest = next(
        (one for one in evaluation.selection.records() if one["at_least"] == 0.9), {"share": 0.0}
    )
    said = (
        f"The confidence of an answer and the share of right ones differ by {_percent(gap)} on "
        f"average, and by {_percent(largest)} in the worst bin."
    )
    if surest["share"]:
        said += (
            f" {_percent(surest['share'])} of the rows have an answer with a probability of at "
            f"least 0.9; of these, {_percent(surest['error'])} are wrong."
        )
    return escape(said)


_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 440, 300, 58, 10, 22, 42


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(share: float, floor: float = 0.0) -> float:
    """Return the height of a share; ``floor`` is a share of the height kept free below."""
    whole = _HEIGHT - _TOP - _BOTTOM
    return _TOP + (1.0 - share) * whole * (1.0 - floor)


def _axes(x_name: str, y_name: str, top: float, floor: float = 0.0) -> list[str]:
    """Return grid lines and names; the vertical axis ends at ``top``."""
    out, right = [], _WIDTH - _RIGHT
    for i in range(6):
        x, y = _x(i / 5), _y(i / 5, floor)
        out.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(_words(f"{20 * i * top:.3g} %", _LEFT - 6, y + 4, "end"))
        out.append(_words(f"{20 * i} %", x, _HEIGHT - _BOTTOM + 16))
    out.append(_words(x_name, (_LEFT + right) / 2, _HEIGHT - 8))
    turned = f"translate(10 {(_HEIGHT - _BOTTOM) / 2}) rotate(-90)"
    out.append(f'<text transform="{turned}" text-anchor="middle">{y_name}</text>')
    return out


def _words(text: str, x: float, y: float, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _svg(name: str, parts: Iterable[str]) -> str:
    inner = "".join(parts)
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{name}">{inner}</svg>'


def _reliability_svg(evaluation: Evaluation) -> str:
    table = evaluation.reliability
    floor = 0.22  # below, how many rows there are
    parts = _axes("confidence; below, rows", "share that is right", 1.0, floor)
    width = 0.88 * (_x(1.0) - _x(0.0)) / table.count.size
    room = (_HEIGHT - _BOTTOM) - _y(0.0, floor) - 4
    most = max(int(table.count.max()), 1)
    points = []
    for i, bin_ in enumerate(table.records()):
        if not bin_["rows"]:
            continue
        left = _x((i + 0.06) / table.count.size)
        y, height = _y(bin_["accuracy"], floor), room * bin_["rows"] / most
        said = (
            f"confidence {bin_['from']:.2f} to {bin_['to']:.2f}: {bin_['rows']:,} rows, mean "
            f"{bin_['confidence']:.3f}, right {bin_['accuracy']:.3f}"
        )
        parts.append(
            f'<g><title>{said}</title><rect class="bar" x="{left:.1f}" y="{y:.1f}" '
            f'width="{width:.1f}" height="{_y(0.0, floor) - y:.1f}" opacity="0.55"/>'
            f'<rect class="bar" x="{left:.1f}" y="{_HEIGHT - _BOTTOM - height:.1f}" '
            f'width="{width:.1f}" height="{height:.1f}"/></g>'
        )
        points.append((_x(bin_["confidence"]), y))
    parts.append(
        f'<line class="ideal" x1="{_x(0)}" y1="{_y(0, floor):.1f}" x2="{_x(1)}" '
        f'y2="{_y(1, floor):.1f}"/>'
    )
    parts += [_polyline(points), *(_dot(x, y) for x, y in points)]
    return _svg("share of right answers by confidence", parts)


def _selection_svg(evaluation: Evaluation) -> str:
    curve = evaluation.selection.curve()
    highest = max((error for _, error in curve), default=0.0)
    top = next(step for step in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if highest <= step)
    parts = _axes("rows that are answered, the surest first", "error among them", top)
    points = [(_x(share), _y(error / top)) for share, error in curve]
    parts.append(_polyline(points))
    for one in evaluation.selection.records():
        if one["share"]:
            said = (
                f"probability of at least {one['at_least']:g}: {_percent(one['share'])} of the "
                f"rows, error {_percent(one['error'])}"
            )
            dot = _dot(_x(one["share"]), _y(one["error"] / top))
            parts.append(f"<g><title>{said}</title>{dot}</g>")
    return _svg("error among the surest rows", parts)


def _polyline(points: Sequence[tuple[float, float]]) -> str:
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="curve" points="{joined}"/>'


def _dot(x: float, y: float) -> str:
    return f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'


# -- tables ----------------------------------------------------------------------------------------


def _labels(evaluation: Evaluation) -> tuple[list[list[Any]], str]:
    """Return rows of the table of labels, the worst first, and what is said of them."""
    scores = evaluation.labels
    chosen = scores.worst()
    note = (
        f"{len(scores):,} labels occur in the data or in predictions; the model knows "
        f"{evaluation.n_classes:,}. The worst are first; press a heading to sort by it."
    )
    if len(chosen) > MOST_LABELS:
        largest = set(np.argsort(-scores.support, kind="stable")[:MOST_LABELS].tolist())
        chosen = [i for i in chosen if i in largest]
        note += f" Here are the {MOST_LABELS:,} with the most rows; a CSV file has all."
    columns = (scores.precision, scores.recall, scores.f1)
    shares = np.round(np.column_stack(columns), 6).tolist()
    counts = np.column_stack([scores.support, scores.predicted, scores.right]).tolist()
    known = scores.known.tolist()
    rows = [[_name(scores.labels[i]), *shares[i], *counts[i], int(known[i])] for i in chosen]
    return rows, escape(note)


def _label_row(row: list[Any]) -> str:
    label, *scores, support, predicted, right, known = row
    mark = "" if known else ' class="unknown" title="the model does not know this label"'
    cells = [f"<td>{score:.3f}</td>" for score in scores]
    cells += [f"<td>{count:,}</td>" for count in (support, predicted, right)]
    return f"<tr><td{mark}>{escape(str(label))}</td>{''.join(cells)}</tr>"


def _name(label: Any) -> Any:
    """Return a label as the table sorts it: a number that JavaScript holds exactly, or a text."""
    exact = isinstance(label, int) and not isinstance(label, bool) and abs(label) < 2**53
    return label if exact else str(label)


def _pairs_note(evaluation: Evaluation) -> str:
    if not evaluation.n_pairs:
        return "No label is taken for another."
    more = "" if evaluation.pairs_complete else "more than "
    return (
        f"{len(evaluation.pairs):,} of {more}{evaluation.n_pairs:,} pairs; shares are of the "
        f"rows that have the label. Examples have the number of their {evaluation.unit} and the "
        "probability of the label that they were given."
    )


def _pair_row(pair: ConfusedPair, unit: str) -> str:
    examples = "".join(_example(example, unit) for example in pair.examples)
    return (
        f'<tr><td class="name">{escape(str(pair.label))}</td>'
        f'<td class="name left">{escape(str(pair.predicted))}</td>'
        f"<td>{pair.count:,}</td><td>{_percent(pair.share)}</td>"
        f'<td class="left"><ul class="examples">{examples}</ul></td></tr>'
    )


def _example(example: Example, unit: str) -> str:
    text = "" if example.text is None else f"{escape(example.text)} "
    return f"<li>{text}<small>{unit} {example.number:,}, {example.probability:.2f}</small></li>"


def _unknown(evaluation: Evaluation) -> str:
    labels = list(evaluation.unknown_labels.items())
    if not labels:
        return ""
    more = "" if evaluation.unknown_complete else "more than "
    listed = ", ".join(f"{escape(str(name))} ({n:,})" for name, n in labels[:_N_UNKNOWN])
    cut = f", and {len(labels) - _N_UNKNOWN:,} more" if len(labels) > _N_UNKNOWN else ""
    return (
        f"<h2>Labels that the model does not know</h2><p class='note'>{evaluation.unknown_rows:,} "
        f"rows have one of {more}{len(labels):,} labels that the model has never seen: "
        f"{listed}{cut}.</p>"
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
