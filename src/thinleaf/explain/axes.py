"""What all figures share: matplotlib, or what to install, and the look of axes."""

from __future__ import annotations

from typing import Any

try:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle, Wedge
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, PercentFormatter
except ImportError as missing:
    raise ImportError('plots need matplotlib: pip install "thinleaf[plot]"') from missing

__all__ = [
    "COLOURS",
    "GREY",
    "MARKERS",
    "Axes",
    "Figure",
    "Line2D",
    "LineCollection",
    "LogLocator",
    "MaxNLocator",
    "NullFormatter",
    "PatchCollection",
    "PercentFormatter",
    "Rectangle",
    "Wedge",
    "new_axes",
    "plain",
    "tidy",
]

# Okabe and Ito: told apart by colour-blind readers too. The first three are the red, blue and green
# of figure 2 of paper 000.
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
MARKERS = "osD^vPX"
GREY = "#555555"


def new_axes(width: float = 6.4) -> Axes:
    """Return the axes of a new figure of so many inches, without pyplot."""
    return Figure(figsize=(width, 4.0), layout="constrained").add_subplot()


def plain(text: Any, longest: int = 28) -> str:
    """Return a label or a name as figures show it: on one line, short, and no formula."""
    shown = "".join(c if c.isprintable() else " " for c in str(text)[: longest + 1])
    shown = shown if len(shown) <= longest else shown[: longest - 1] + "…"
    return shown.replace("$", r"\$")


def tidy(ax: Axes) -> Axes:
    """Leave out what carries no information."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", lw=0.8)
    ax.set_axisbelow(True)
    return ax
