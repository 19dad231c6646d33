"""An explanation as a piece of HTML: no scripts, no colours of its own but for signs.

All that comes from a model or its input is escaped, and kept from turning the text around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from thinleaf.model.explanation.in_words import counted, number, percent
from thinleaf.model.explanation.values import Against, Change, Explanation, Path, Route, Score

_FOR, _AGAINST = "0,114,178", "213,94,0"
_LONGEST = 300
_CELL = "padding:1px 8px 1px 0;text-align:left;vertical-align:top"
_DIM = "opacity:.65"


def html_of(e: Explanation, top: int, n_paths: int) -> str:
    """Return an explanation as HTML."""
    parts = [_text(e)] if e.text is not None else []
    parts.append(_answers(e))
    parts += [_path(e, path, i, top) for i, path in enumerate(e.paths[:n_paths])]
    if len(e.paths) > n_paths:
        rest = counted(len(e.paths) - n_paths, "path", "paths")
        weight = sum(path.weight for path in e.paths[n_paths:])
        parts.append(f'<p style="{_DIM}">and {rest} more, of weight {weight:.2f}</p>')
    if e.against is not None:
        parts.append(_against(e.against, top))
    return (
        '<div class="thinleaf-explanation" style="font-size:90%;line-height:1.5;max-width:60em">'
        + "".join(parts)
        + "</div>"
    )


def safe(value: Any) -> str:
    """Return a value as text that is nothing but text."""
    text = str(value)
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)
    return f"<bdi>{escape(text)}</bdi>"


def _unbroken(text: str) -> str:
    return text.replace(" ", "\u00a0")


def _text(e: Explanation) -> str:
    """Return the text, its words in the colour of what they add."""
    text = e.text or ""
    largest = max((abs(word.amount) for word in e.words), default=0.0)
    out, done = [], 0
    for word in e.words:
        out.append(escape(text[done : word.start]))
        shade = abs(word.amount) / largest if largest else 0.0
        colour = _FOR if word.amount > 0.0 else _AGAINST
        style = f"background:rgba({colour},{0.45 * shade:.2f});border-radius:3px;padding:0 2px"
        out.append(f'<span style="{style}" title="{number(word.amount)}">{safe(word.text)}</span>')
        done = word.end
    out.append(escape(text[done:]))
    return f'<p style="margin:4px 0;white-space:pre-wrap">{"".join(out)}</p>'


def _answers(e: Explanation) -> str:
    rows = []
    for i, answer in enumerate(e.answers):
        weight = "600" if i == 0 else "400"
        bar = _bar(answer.probability, _FOR)
        rows.append(
            f'<tr><td style="{_CELL};font-weight:{weight}">{safe(answer.label)}</td>'
            f'<td style="{_CELL}">{percent(answer.probability)}</td>'
            f'<td style="{_CELL};width:10em">{bar}</td></tr>'
        )
    return _table(rows)


def _bar(share: float, colour: str) -> str:
    width = 100.0 * min(max(share, 0.0), 1.0)
    return (
        f'<span style="display:inline-block;height:.7em;width:{width:.1f}%;min-width:1px;'
        f'background:rgba({colour},.6);border-radius:2px"></span>'
    )


def _path(e: Explanation, path: Path, i: int, top: int) -> str:
    said = [f"tree {path.tree}"] if e.n_trees > 1 else []
    if len(e.paths) > 1:
        said += [f"weight {path.weight:.2f}", f"gives {percent(e.answers[0].parts[i])}"]
    said.append(counted(len(path.steps), "router", "routers"))
    said.append(f"leaf {path.leaf} with {counted(path.n_classes, 'class', 'classes')}")
    rows = [
        f'<tr><td style="{_CELL}">{step.depth}</td>'
        f'<td style="{_CELL};white-space:nowrap"><b>{step.side}</b> {percent(step.probability)}<br>'
        f'<span style="{_DIM}">{step.other_side} {percent(step.other_probability)}</span></td>'
        f'<td style="{_CELL}">{_sum(step.margin, top)}</td></tr>'
        for step in path.steps
    ]
    rows += [
        f'<tr><td style="{_CELL};{_DIM}">{"leaf" if n == 0 else ""}</td>'
        f'<td style="{_CELL}">{safe(c.label)} {_unbroken(percent(c.probability))}</td>'
        f'<td style="{_CELL}">{"" if c.score is None else _sum(c.score, top)}</td></tr>'
        for n, c in enumerate(path.candidates)
    ]
    return _details(f"Path: {', '.join(said)}", _table(rows), opened=i == 0)


def _sum(score: Score, top: int) -> str:
    """Return a score as chips: bias, the largest contributions, what is left."""
    best = score.top(top)
    largest = max([abs(part.amount) for part in best], default=0.0)
    chips = [f"<b>{number(score.total)}</b> = bias {number(score.bias)}"]
    for part in best:
        colour = _FOR if part.amount > 0.0 else _AGAINST
        shade = 0.12 + 0.4 * abs(part.amount) / largest
        chips.append(
            f'<span style="background:rgba({colour},{shade:.2f});border-radius:3px;'
            f'padding:0 3px;white-space:nowrap" title="value {part.value:.4g}">'
            f"{safe(part.name)} {number(part.amount)}</span>"
        )
    n_left = score.n_contributions - len(best)
    if n_left > 0:
        rest = float(score.amounts.sum()) - sum(part.amount for part in best)
        chips.append(f'<span style="{_DIM}">{n_left:,} more {number(rest)}</span>')
    return " ".join(chips)


def _against(against: Against, top: int) -> str:
    parts = [_route(route, len(against.routes) > 1, top) for route in against.routes[:2]]
    if not parts:
        parts = ["<p>No leaf holds it: it never comes out.</p>"]
    title = f"Why not {safe(against.label)}: {percent(against.answer.probability)}"
    return _details(title, "".join(parts), opened=True)


def _route(route: Route, several: bool, top: int) -> str:
    where = f"Tree {route.tree}, leaf {route.leaf}" if several else f"Leaf {route.leaf}"
    if route.reached or route.fork is None:
        said = f"{where} is reached."
    else:
        step = route.steps[route.fork]
        said = f"{where} is not reached: the paths part at "
        said += f"<b>node {step.node}</b>, depth {step.depth}."
    items = "".join(f"<li>{_change(change, route, top)}</li>" for change in route.changes)
    return f'<p style="margin:4px 0">{said}</p><ul style="margin:4px 0">{items}</ul>'


def _change(change: Change, route: Route, top: int) -> str:
    if change.step is not None:
        what = f"node {change.step.node} would have to send it {change.step.side}; ahead: "
    else:
        what = f"in the leaf {safe(route.rival.label) if route.rival else ''} is ahead: "
    out = what + _sum(change.lead, top)
    if change.remove:
        out += f"<br>without {_names(part.name for part in change.remove)}"
    if change.add:
        named = ", ".join(f"{safe(part.name)} at {part.value:.3g}" for part in change.add[:3])
        out += f"<br>{'or with' if change.remove else 'with'} {named}"
    return out


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(safe, names))


def _table(rows: list[str]) -> str:
    return f'<table style="border-collapse:collapse;margin:4px 0">{"".join(rows)}</table>'


def _details(title: str, content: str, *, opened: bool) -> str:
    state = " open" if opened else ""
    return (
        f'<details{state} style="margin:6px 0"><summary style="cursor:pointer">{title}</summary>'
        f"{content}</details>"
    )
