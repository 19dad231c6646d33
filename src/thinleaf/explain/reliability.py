"""Confidence beside accuracy, drawn: the reliability diagram of Guo et al. (2017).

Like all figures, drawn on axes that are given, or on those of a new figure without pyplot.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thinleaf._dtypes import AccumArray, OffsetArray
from thinleaf.arrays.replace import replace_file
from thinleaf.explain.axes import COLOURS, GREY, Axes, PercentFormatter, new_axes, tidy

__all__ = ["plot_reliability", "write_figure"]


def plot_reliability(
    count: OffsetArray,
    confidence: AccumArray,
    accuracy: AccumArray,
    ece: float,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often answers of each confidence are right.

    Parameters
    ----------
    count : ndarray of shape (n_bins,)
        Rows in bins of equal width from 0 to 1.
    confidence, accuracy : ndarray of shape (n_bins,)
        Their means; NaN without rows.
    ece : float
        The expected calibration error, which stands in the title.
    ax : Axes, optional
        By default, those of a new figure.

    Returns
    -------
    Axes
        A bar a bin is its accuracy, a point its mean confidence beside it; on the dashed line both
        are the same. How many rows there are is the darkness of a bar.

    Examples
    --------
    >>> import numpy as np
    >>> from thinleaf.explain.reliability import plot_reliability
    >>> ax = plot_reliability(np.array([10, 30]), np.array([0.4, 0.8]), np.array([0.3, 0.9]), 0.1)
    >>> ax.get_ylabel()
    'share that is right'
    """
    ax = new_axes(5.2) if ax is None else ax
    width = 1.0 / count.size
    filled = np.flatnonzero(count)
    shade = 0.15 + 0.7 * np.sqrt(count / max(int(count.max()), 1))
    for i in filled:
        ax.bar(
            (i + 0.5) * width, accuracy[i], 0.92 * width, color=COLOURS[1], alpha=float(shade[i])
        )
    ax.plot([0.0, 1.0], [0.0, 1.0], "--", color=GREY, lw=1.2)
    ax.plot(confidence[filled], accuracy[filled], "o-", color=COLOURS[0], ms=4, lw=1.2)
    ax.set(xlabel="confidence", ylabel="share that is right", xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    ax.set_title(f"expected calibration error {100 * ece:.1f} %", fontsize="medium")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0))
    return tidy(ax)


def write_figure(ax: Axes, path: Path) -> None:
    """Write the figure of some axes.

    Parameters
    ----------
    ax : Axes
    path : Path
        What ends in .png, .svg or .pdf; a file of that name is replaced.
    """
    metadata: dict[str, Any] = {"Date": None} if path.suffix == ".svg" else {}
    figure: Any = ax.figure
    with replace_file(path) as temporary:
        figure.savefig(temporary, dpi=150, format=path.suffix[1:], metadata=metadata)
