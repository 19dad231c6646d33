"""Error against latency of several models, drawn: which of them nothing else beats in both.

Like all figures, drawn on axes that are given, or on those of a new figure without pyplot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from thinleaf.arrays.replace import replace_file
from thinleaf.explain.axes import (
    COLOURS,
    GREY,
    MARKERS,
    Axes,
    LogLocator,
    NullFormatter,
    PercentFormatter,
    new_axes,
    tidy,
)

__all__ = ["pareto_front", "plot_frontier", "write_frontier"]

Point = tuple[float, float]

_MOST_NAMED = 6
"""Of more points, the names are in a legend."""


def pareto_front(points: Mapping[str, Point]) -> list[str]:
    """Return the names of the points that no other one is below in both coordinates, by the first.

    Of equal points, all are on the front.

    Examples
    --------
    >>> from thinleaf.explain.frontier import pareto_front
    >>> pareto_front({"slow": (9.0, 0.1), "bad": (9.5, 0.3), "fast": (1.0, 0.2)})
    ['fast', 'slow']
    """
    front: list[str] = []
    best = float("inf")
    for name, (x, y) in sorted(points.items(), key=lambda item: item[1]):
        if y < best or (front and points[front[-1]] == (x, y)):
            front.append(name)
            best = y
    return front


def plot_frontier(points: Mapping[str, Point], ax: Axes | None = None) -> Axes:
    """Draw the test error of models against their latency, and the Pareto front.

    Parameters
    ----------
    points : mapping of str to (microseconds, error)
        By the name of the model; errors are shares.
    ax : Axes, optional
        By default, those of a new figure.

    Returns
    -------
    Axes
        The scale of latencies is logarithmic. Models on the front are filled and joined by a line.
        The names of a few stand beside them, those of many in a legend.

    Examples
    --------
    >>> from thinleaf.explain.frontier import plot_frontier
    >>> ax = plot_frontier({"tree": (1.2, 0.05), "flat": (2.6, 0.23), "forest": (18.0, 0.04)})
    >>> ax.get_xlabel()
    'µs a prediction, one row a call'
    """
    if not points:
        raise ValueError("there is nothing to draw: give at least one model")
    named = len(points) <= _MOST_NAMED
    ax = new_axes(6.4 if named else 8.6) if ax is None else ax
    front = pareto_front(points)
    x, y = zip(*(points[name] for name in front), strict=True)
    ax.plot(x, y, drawstyle="steps-post", color=GREY, lw=1.2, zorder=1, label="Pareto front")
    for i, (name, (latency, error)) in enumerate(points.items()):
        colour = COLOURS[i % len(COLOURS)]
        marker = MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]  # so that no pair recurs soon
        filled = colour if name in front else "none"
        ax.scatter(
            [latency], [error], marker=marker, edgecolors=colour, facecolors=filled, zorder=2,
            clip_on=False,
            label=name,
        )  # fmt: skip
        if named:
            ax.annotate(
                name, (latency, error), (6, 5), textcoords="offset points", fontsize="small",
            )  # fmt: skip
    _scale(ax, [latency for latency, _ in points.values()], [error for _, error in points.values()])
    if not named:
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return tidy(ax)


def _scale(ax: Axes, latencies: Sequence[float], errors: Sequence[float]) -> None:
    """Set scales that leave room for names; errors start at zero unless they are much alike."""
    ax.set(xscale="log", xlabel="µs a prediction, one row a call", ylabel="test error")
    ax.set_xlim(min(latencies) / 1.5, max(latencies) * 2.0)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    low, high = min(errors), max(errors)
    room = 0.25 * (high - low) or 0.1 * high or 0.01
    ax.set_ylim(0.0 if low < high / 2 else max(0.0, low - room), high + room)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))


def write_frontier(points: Mapping[str, Point], path: Path, title: str) -> None:
    """Draw points as :func:`plot_frontier` does, and write the figure.

    Parameters
    ----------
    points : mapping of str to (microseconds, error)
    path : Path
        What ends in .png, .svg or .pdf.
    title : str
        Of the file, in its metadata: it stands near its beginning.
    """
    metadata: dict[str, Any] = {"Title": title}
    if path.suffix == ".svg":
        metadata["Date"] = None  # so that the same figures give the same file
    figure: Any = plot_frontier(points).figure
    with replace_file(path) as temporary:
        figure.savefig(temporary, dpi=150, format=path.suffix[1:], metadata=metadata)
