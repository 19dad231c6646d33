"""What a fit to a budget has tried, what won, and what the next better model would cost."""

from __future__ import annotations

from collections.abc import Sequence

from thinleaf.model.front import Frontier, Point

_WHAT = {
    "tree": "the default adaptive tree",
    "forest": "a forest that begins with it",
    "flat": "one flat leaf of all classes",
    "label tree": "a label tree on the raw texts",
}


def why(
    frontier: Frontier,
    sources: Sequence[str],
    max_us: float | None,
    max_bytes: float | None,
    left_out: Sequence[str],
    n_held: int,
    honest: bool,
) -> str:
    """Return the reasons for a choice."""
    chosen = frontier.chosen
    assert chosen is not None
    trained = ", ".join(_named(source) for source in sources)
    judged = (
        f"{n_held:,} held-out rows" if honest else "the rows that were fitted: there are too few"
    )
    lines = [
        f"Trained: {trained}. {len(frontier)} models were made of them without training, and "
        f"judged by {judged}.",
        f"Chosen: {_costs(chosen, frontier.metric)}"
        + ("." if chosen.all_rows else "; it was not fitted to the held-out rows."),
    ]
    default = next(
        (p for p in frontier if p.source == "tree" and p.variant.words == "1 tree"), None
    )
    if default is not None and default != chosen:
        lines.append(f"The default model: {_costs(default, frontier.metric)}.")
    better = [p for p in frontier if p.error < chosen.error]
    if better:
        next_one = min(better, key=lambda p: _factor(p, chosen, max_us, max_bytes))
        lines.append(f"The next better one: {_costs(next_one, frontier.metric)}.")
    else:
        lines.append("No model that was tried is better.")
    if left_out:
        lines.append(f"Not tried: {'; '.join(left_out)}.")
    return "\n".join(lines)


def _named(source: str) -> str:
    if source.startswith("round "):
        return f"its {source} of growth"
    return _WHAT.get(source, f"a tree of {source}")


def _factor(p: Point, chosen: Point, max_us: float | None, max_bytes: float | None) -> float:
    """Return how many times more a model costs, in what there is a budget of."""
    of_time, of_bytes = p.us / chosen.us, p.bytes / chosen.bytes
    if max_us is None and max_bytes is not None:
        return of_bytes
    return of_time if max_bytes is None else max(of_time, of_bytes)


def _costs(p: Point, metric: str) -> str:
    return f"{p.name}: {metric} {p.error:.4f}, {p.us:.3g} µs, {p.bytes:,} bytes"
