"""An explanation in words: lines of pieces, each with a style, for terminals and plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from thinleaf.model.explanation.values import (
    Against,
    Candidate,
    Change,
    Contribution,
    Explanation,
    Path,
    Route,
    Score,
    Step,
)

if TYPE_CHECKING:
    from rich.text import Text

Line: TypeAlias = list[tuple[str, str]]

_STYLES = {"": "", "strong": "bold", "dim": "dim", "for": "green", "against": "red"}
_LONGEST = 60
_MAX_ROUTES = 2
_MAX_ADVICE = 3


def shown(value: Any, longest: int = _LONGEST) -> str:
    """Return a label, a name or a text on one line that no terminal takes for commands."""
    text = str(value)[: longest + 1]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def number(value: float) -> str:
    """Return an amount with its sign."""
    return f"{value:+.2f}" if abs(value) >= 0.005 or value == 0.0 else f"{value:+.0e}"


def percent(p: float) -> str:
    """Return a probability."""
    if p >= 0.9995:
        return "100 %" if p == 1.0 else ">99.9 %"
    return f"{100 * p:.1f} %" if p >= 0.0005 or p == 0.0 else "<0.1 %"


def counted(n: int, one: str, more: str) -> str:
    """Return how many there are of something."""
    return f"{n:,} {one if n == 1 else more}"


def lines_of(e: Explanation, top: int, n_paths: int) -> Iterator[Line]:
    """Yield the lines of an explanation."""
    if e.text is not None:
        yield [("text   ", "dim"), (shown(e.text, 200), "")]
        words = [word for word in e.words if word.amount != 0.0]
        best = sorted(words, key=lambda word: -abs(word.amount))[: 2 * top]
        if best:
            pieces = [(f"{shown(w.text)} {number(w.amount)}", _sign(w.amount)) for w in best]
            yield [("words  ", "dim"), *_joined(pieces)]
    yield [("label  ", "dim"), (shown(e.label), "strong"), (f"  {percent(e.probability)}", "")]
    if len(e.answers) > 1:
        others = [(f"{shown(a.label)} {percent(a.probability)}", "") for a in e.answers[1:]]
        yield [("then   ", "dim"), *_joined(others)]
    for number_, path in enumerate(e.paths[:n_paths]):
        yield []
        yield from _path_lines(e, path, number_, top)
    if len(e.paths) > n_paths:
        rest = e.paths[n_paths:]
        share = sum(path.weight for path in rest)
        given = sum(e.answers[0].parts[n_paths:])
        yield []
        yield [
            (f"and {counted(len(rest), 'path', 'paths')} more, of weight {share:.2f}, ", "dim"),
            (f"which give {percent(given)} to {shown(e.label)}", "dim"),
        ]
    if e.against is not None:
        yield []
        yield from _against_lines(e.against, top)


def _path_lines(e: Explanation, path: Path, i: int, top: int) -> Iterator[Line]:
    several = len(e.paths) > 1
    title = f"path {i + 1}" if several else "path"
    said = [f"tree {path.tree}"] if e.n_trees > 1 else []
    if several:
        said.append(f"weight {path.weight:.2f}")
        said.append(f"gives {percent(e.answers[0].parts[i])} to {shown(e.label)}")
    said.append(counted(len(path.steps), "router", "routers"))
    yield [(title, "strong"), (f"  {', '.join(said)}", "dim")]
    for step in path.steps:
        yield from _step_lines(step, top)
    if path.n_classes == 1 and path.candidates[0].score is None:
        yield [("  leaf ", "dim"), (shown(path.candidates[0].label), "strong")]
        return
    outside = f", {percent(path.outside)} for others" if path.n_classes < e.n_classes else ""
    yield [
        (f"  leaf {path.leaf}", "strong"),
        (f"  {counted(path.n_classes, 'class', 'classes')}{outside}", "dim"),
    ]
    for candidate in path.candidates:
        yield from _candidate_lines(candidate, top)


def _step_lines(step: Step, top: int) -> Iterator[Line]:
    yield [
        (f"  {step.depth:2}  {step.side}", "strong"),
        (f"  {percent(step.probability)}, {step.other_side} {percent(step.other_probability)}", ""),
        (f"  node {step.node}", "dim"),
    ]
    yield [("      margin ", "dim"), *_sum(step.margin, top)]


def _candidate_lines(candidate: Candidate, top: int) -> Iterator[Line]:
    yield [
        (f"      {shown(candidate.label)}", "strong"),
        (f"  {percent(candidate.probability)}", ""),
    ]
    if candidate.score is not None:
        yield [("        score ", "dim"), *_sum(candidate.score, top)]


def _sum(score: Score, top: int) -> Line:
    """Return a score and its largest parts."""
    best = score.top(top)
    pieces: Line = [(f"{number(score.total)} = bias {number(score.bias)}", "")]
    pieces += [(f", {shown(p.name)} {number(p.amount)}", _sign(p.amount)) for p in best]
    n_left = 0 if len(best) < top else score.n_contributions - len(best)
    if n_left > 0:
        rest = float(score.amounts.sum()) - sum(part.amount for part in best)
        pieces.append((f", {n_left:,} more {number(rest)}", "dim"))
    return pieces


def _against_lines(against: Against, top: int) -> Iterator[Line]:
    yield [
        ("why not ", "strong"),
        (shown(against.label), "strong"),
        (f"  {percent(against.answer.probability)}", ""),
    ]
    if not against.routes:
        yield [("  no leaf holds it: it never comes out", "")]
    for route in against.routes[:_MAX_ROUTES]:
        yield from _route_lines(route, len(against.routes) > 1, top)
    if len(against.routes) > _MAX_ROUTES:
        n = len(against.routes) - _MAX_ROUTES
        yield [(f"  and ways to it in {counted(n, 'tree', 'trees')} more", "dim")]


def _route_lines(route: Route, several: bool, top: int) -> Iterator[Line]:
    where = f"  tree {route.tree}: " if several else "  "
    leaf = f"leaf {route.leaf}"
    if route.n_leaves > 1:
        leaf += f", the likeliest of {route.n_leaves} that hold it,"
    if route.reached:
        yield [(f"{where}{leaf} is reached", "")]
    else:
        assert route.fork is not None
        step = route.steps[route.fork]
        yield [
            (f"{where}{leaf} is not reached: ", ""),
            (f"the paths part at node {step.node}, depth {step.depth}", "strong"),
        ]
    for change in route.changes:
        yield from _change_lines(change, route, top)
    if not route.changes:
        yield [("    nothing stands against it there", "dim")]


def _change_lines(change: Change, route: Route, top: int) -> Iterator[Line]:
    if change.step is not None:
        what = f"node {change.step.node} would have to send it {change.step.side}"
        what += f": {change.step.other_side} is ahead by "
    else:
        rival = "" if route.rival is None else shown(route.rival.label)
        what = f"in the leaf {rival} is ahead by "
    yield [(f"    {what}", ""), *_sum(change.lead, top)]
    if change.remove:
        yield [("      without ", "dim"), *_names(change.remove)]
    if change.add:
        best = [(f"{shown(p.name)} at {p.value:.3g}", "") for p in change.add[:_MAX_ADVICE]]
        yield [("      or with " if change.remove else "      with ", "dim"), *_joined(best)]


def _names(parts: Iterable[Contribution]) -> Line:
    return _joined([(shown(part.name), "") for part in parts])


def _joined(pieces: Line) -> Line:
    return [(piece if i == 0 else f", {piece}", style) for i, (piece, style) in enumerate(pieces)]


def _sign(amount: float) -> str:
    return "for" if amount > 0.0 else "against"


def rich_text(e: Explanation, top: int = 5, n_paths: int = 3) -> Text:
    """Return an explanation in words and colours."""
    from rich.text import Text

    out = Text()
    for i, line in enumerate(lines_of(e, top, n_paths)):
        out.append("\n" if i else "")
        for piece, style in line:
            out.append(piece, _STYLES[style])
    return out
