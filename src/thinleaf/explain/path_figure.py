"""One prediction, drawn: at each router what pushed the input along, in the leaf what decided."""

from __future__ import annotations

from typing import Any

from thinleaf.explain.axes import COLOURS, GREY, Axes, Figure, plain
from thinleaf.model.explanation.in_words import percent
from thinleaf.model.explanation.values import Candidate, Explanation, Score, Step

__all__ = ["plot_path"]

_MOST_PANELS = 16
_BAR = 0.16


def plot_path(
    explanation: Explanation, *, path: int = 0, n_features: int = 5, n_candidates: int = 3
) -> Any:
    """Draw the path of one prediction: a panel a router, and one for each candidate of the leaf.

    Parameters
    ----------
    explanation : Explanation
        Of ``model.explain(x)``.
    path : int
        Which one, if there are several; the first is the weightiest.
    n_features : int
        How many contributions a panel shows, beside the bias and all others together.
    n_candidates : int
        How many classes of the leaf.

    Returns
    -------
    Figure
        Save with ``figure.savefig("path.svg")``. Bars to the right pushed along the path or speak
        for the class. Of a path that is very long, the first and the last routers are shown.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import AdaptiveSoftmaxTreeClassifier
    >>> from thinleaf.explain.path_figure import plot_path
    >>> X, y = load_digits(return_X_y=True)
    >>> ast = AdaptiveSoftmaxTreeClassifier(max_rounds=1, random_state=0).fit(X, y)
    >>> figure = plot_path(ast.explain(X[0]))
    """
    if not 0 <= path < len(explanation.paths):
        raise ValueError(f"path must be in 0..{len(explanation.paths) - 1}, got {path!r}")
    own = explanation.paths[path]
    steps = list(own.steps)
    n_hidden = len(steps) - _MOST_PANELS
    if n_hidden > 0:
        half = _MOST_PANELS // 2
        steps = steps[:half] + steps[-half:]
    candidates = [c for c in own.candidates[:n_candidates] if c.score is not None]
    panels: list[Step | Candidate] = [*steps, *candidates]
    n_columns = 1 if len(panels) <= 4 else 2
    n_rows = -(-max(len(panels), 1) // n_columns)
    height = 0.55 + n_rows * ((n_features + 2) * _BAR + 0.5)
    figure = Figure(figsize=(5.2 * n_columns, height), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).T.ravel()
    for ax, panel in zip(axes, panels, strict=False):
        if isinstance(panel, Step):
            title = f"depth {panel.depth}: {panel.side} {percent(panel.probability)}"
            title += f" ({panel.other_side} {percent(panel.other_probability)})"
            _bars(ax, panel.margin, title, n_features, COLOURS[1])
        elif panel.score is not None:
            title = f"leaf {own.leaf}: {plain(panel.label)} {percent(panel.probability)}"
            _bars(ax, panel.score, title, n_features, COLOURS[2])
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    said = f"{plain(explanation.label, 40)}, {percent(explanation.probability)}"
    if explanation.text is not None:
        said += f": {plain(explanation.text, 70)}"
    if len(explanation.paths) > 1:
        said += f" (path {path + 1} of {len(explanation.paths)}, weight {own.weight:.2f})"
    if n_hidden > 0:
        said += f"; {n_hidden} routers between are left out"
    figure.suptitle(said, fontsize=9, x=0.01, ha="left")
    return figure


def _bars(ax: Axes, score: Score, title: str, n_features: int, colour: str) -> None:
    best = score.top(n_features)
    names = ["bias", *(plain(part.name, 22) for part in best)]
    amounts = [score.bias, *(part.amount for part in best)]
    n_left = score.n_contributions - len(best)
    if n_left:
        names.append(f"{n_left:,} more")
        amounts.append(float(score.amounts.sum()) - sum(part.amount for part in best))
    names.append("sum")
    amounts.append(score.total)
    y = range(len(names), 0, -1)
    colours = [colour if amount >= 0.0 else COLOURS[0] for amount in amounts[:-1]]
    ax.barh(list(y), amounts, color=[*colours, GREY], height=0.7)
    ax.set_yticks(list(y), names, fontsize=6)
    ax.tick_params(axis="x", labelsize=6)
    ax.tick_params(axis="y", length=0)
    ax.axvline(0.0, color=GREY, lw=0.6)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_title(title, fontsize=7, loc="left", pad=2)
    ax.margins(y=0.02)
