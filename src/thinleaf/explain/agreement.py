"""Agreement of a head with the full output layer, drawn by kind of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinleaf.explain.axes import COLOURS, GREY, Axes, PercentFormatter, new_axes, plain, tidy

__all__ = ["plot_agreement"]


def plot_agreement(report: Mapping[str, Any], ax: Axes | None = None) -> Axes:
    """Draw greedy agreement and top-5 recall of each kind of text.

    Parameters
    ----------
    report : mapping
        ``AgreementReport.to_dict()`` of :mod:`thinleaf.torch`, or what its JSON file holds.
    ax : Axes, optional
        By default, those of a new figure.

    Returns
    -------
    Axes
        Two bars a kind of text, agreement with two standard errors; the dashed line is what
        held-out text of training promised. Names of texts that are unlike it are marked by a star.

    Examples
    --------
    >>> from thinleaf.explain.agreement import plot_agreement
    >>> text = {"kind": "novels", "agreement": 0.98, "standard_error": 0.002}
    >>> text |= {"top5_recall": 0.95, "unlike": False}
    >>> ax = plot_agreement({"expected": 0.98, "texts": [text]})
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['novels']
    """
    ax = new_axes() if ax is None else ax
    texts = report["texts"]
    at = range(len(texts))
    ax.bar(
        [i - 0.2 for i in at],
        [text["agreement"] for text in texts],
        0.38,
        yerr=[2.0 * text["standard_error"] for text in texts],
        color=COLOURS[1],
        ecolor=GREY,
        label="greedy agreement",
    )
    recall = [text["top5_recall"] for text in texts]
    ax.bar([i + 0.2 for i in at], recall, 0.38, color=COLOURS[5], label="top-5 recall")
    if report["expected"] is not None:
        ax.axhline(report["expected"], ls="--", color=GREY, lw=1.2, label="held-out text")
    names = [plain(text["kind"]) + (" *" if text["unlike"] else "") for text in texts]
    ax.set_xticks(list(at), names)
    lowest = min([*recall, *(text["agreement"] for text in texts)], default=0.0)
    ax.set(ylabel="share of states", ylim=(max(0.0, lowest - 0.1), 1.0))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)
    return tidy(ax)
