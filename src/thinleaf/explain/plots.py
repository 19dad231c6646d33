"""How a tree grew, drawn: figures 2, 3, 5 and 6 of paper 000, one function each.

Functions read a fitted model's ``history_``, ``tree_`` and parameters, and draw on the axes that
they are given, or on those of a new figure without pyplot: so they need no display and leave
nothing behind. A figure is ``ax.figure``; save it with ``ax.figure.savefig(path)``. Nothing is
measured here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any, Literal

import numpy as np

from thinleaf.explain.axes import (
    COLOURS,
    GREY,
    MARKERS,
    Axes,
    Figure,
    Line2D,
    MaxNLocator,
    PercentFormatter,
    new_axes,
    tidy,
)
from thinleaf.explain.histories import (
    AdaptiveTree,
    Models,
    course_of,
    histories_of,
    most_classes,
    require_rounds,
    require_validation,
    tree_of,
)
from thinleaf.model.cost import summarize

__all__ = ["plot_growth", "plot_leaf_classes", "plot_mean_depth", "plot_training"]


def plot_training(
    models: Models, ax: Axes | None = None, *, validation: bool | None = None
) -> Axes:
    """Draw the errors over the sweeps, with arrows where leaves were expanded (figure 2).

    Parameters
    ----------
    models : model, ``history_``, or dict of them by label
        Adaptive trees and trees of fixed structure may be mixed.
    ax : Axes, optional
        By default, those of a new figure.
    validation : bool, optional
        Whether to draw the validation error. By default, where there is one.

    Returns
    -------
    Axes
        Training errors are dashed and validation errors solid. Adaptive trees have one a sweep of
        the former, one a round of the latter. Arrows stand at the last sweep before an expansion,
        with the number of leaves that were replaced.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier
    >>> from thinleaf.explain.plots import plot_training
    >>> X, y = load_digits(return_X_y=True)
    >>> ast = AdaptiveSoftmaxTreeClassifier(max_rounds=1, random_state=0).fit(X, y)
    >>> st = SoftmaxTreeClassifier(max_sweeps=5, random_state=0).fit(X, y)
    >>> ax = plot_training({"AST": ast, "ST": st})
    >>> ax.get_xlabel()
    'sweep'
    """
    courses = {label: course_of(h) for label, h in histories_of(models).items()}
    if validation:
        require_validation({label: bool(c.held) for label, c in courses.items()})
    ax = new_axes() if ax is None else ax
    # the first model is drawn last, above the others
    styled = list(zip(courses.items(), cycle(COLOURS), strict=False))
    for (label, course), colour in reversed(styled):
        sweeps = range(1, len(course.train) + 1)
        tops = dict(zip(sweeps, course.train, strict=True))
        ax.plot(sweeps, course.train, "--", color=colour, lw=1.4, label=_joined(label, "training"))
        if course.held and validation is not False:
            at, errors = zip(*course.held, strict=True)
            style = "-" if len(at) == len(sweeps) else "o-"  # rounds are few: show where they end
            ax.plot(at, errors, style, color=colour, ms=4, label=_joined(label, "validation"))
            tops |= {sweep: max(tops[sweep], error) for sweep, error in course.held}
        for sweep, n_leaves in course.expansions:
            _arrow(ax, sweep, tops[sweep], f"+{n_leaves}", colour)
    ax.legend(
        handles=_training_handles(
            courses,
            held=validation is not False and any(c.held for c in courses.values()),
            arrows=any(c.expansions for c in courses.values()),
        ),
        frameon=False,
    )
    ax.set(xlabel="sweep", ylabel="0/1 error")
    ax.margins(y=0.15)
    ax.set_ylim(bottom=0.0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    return tidy(ax)


def plot_leaf_classes(model: AdaptiveTree, ax: Axes | None = None) -> Axes:
    """Draw how many classes the leaves hold at each depth, and could hold at most (figure 3).

    Parameters
    ----------
    model : AdaptiveSoftmaxTreeClassifier
        Fitted.
    ax : Axes, optional
        By default, those of a new figure.

    Returns
    -------
    Axes
        A bubble for all leaves of one depth and size, larger for more of them; the mean of each
        depth; and the maximum, k₀·α^e after the e expansions that a depth needs. There k₀ = α₀·K
        and Δ₀ are the model's parameters if they were set; else the widest leaf of any round, and
        the depth of round 0.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import AdaptiveSoftmaxTreeClassifier
    >>> from thinleaf.explain.plots import plot_leaf_classes
    >>> X, y = load_digits(return_X_y=True)
    >>> ast = AdaptiveSoftmaxTreeClassifier(max_rounds=1, random_state=0).fit(X, y)
    >>> plot_leaf_classes(ast).get_ylabel()
    'classes in a leaf'
    """
    tree = tree_of(model)
    depth, size = tree.node_depth[tree.is_leaf], tree.leaf_sizes
    (bubble_depth, bubble_size), n_leaves = np.unique([depth, size], axis=1, return_counts=True)
    with_leaves = np.unique(depth)
    means = [float(size[depth == d].mean()) for d in with_leaves]
    depths = np.arange(depth.min(), depth.max() + 1)
    limits = most_classes(model, depths)

    ax = new_axes() if ax is None else ax
    ax.plot(depths, limits, "s--", color=COLOURS[2], ms=5, label="theoretical maximum")
    ax.plot(with_leaves, means, "-", color=COLOURS[1], label="mean")
    area = 30.0 + 370.0 * (n_leaves - 1) / max(n_leaves.max() - 1, 1)
    ax.scatter(
        bubble_depth, bubble_size, s=area, color=COLOURS[1], alpha=0.45, lw=0.0, zorder=3,
        label="leaves (larger: more of them)",
    )  # fmt: skip
    ax.set(xlabel="depth", ylabel="classes in a leaf")
    if limits.max() > 50.0:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0.0, 1.1 * float(limits.max()))
        ax.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.set_xlim(depths[0] - 0.5, depths[-1] + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.legend(frameon=False)
    return tidy(ax)


def plot_growth(
    models: Models,
    axes: Sequence[Axes] | None = None,
    *,
    against: Literal["round", "depth"] = "round",
    validation: bool | None = None,
) -> tuple[Axes, Axes, Axes]:
    """Draw error, cost of a prediction and coverage as trees grow (figure 5).

    Parameters
    ----------
    models : model, ``history_``, or dict of them by label
        Of adaptive trees, such as some of different α₀ and α.
    axes : sequence of three Axes, optional
        By default, those of a new figure.
    against : {"round", "depth"}
        What to draw them against; the depth is that of the deepest leaf.
    validation : bool, optional
        Whether the error is on the validation or on the training rows. By default, on the former if
        every model has some. Cost and coverage are of training rows.

    Returns
    -------
    tuple of three Axes

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import AdaptiveSoftmaxTreeClassifier
    >>> from thinleaf.explain.plots import plot_growth
    >>> X, y = load_digits(return_X_y=True)
    >>> models = {
    ...     f"α = {alpha}": AdaptiveSoftmaxTreeClassifier(
    ...         contraction=alpha, max_rounds=1, random_state=0
    ...     ).fit(X, y)
    ...     for alpha in (0.6, 0.8)
    ... }
    >>> [ax.get_ylabel() for ax in plot_growth(models)]
    ['top-1 error (validation)', 'multiplications a prediction', 'coverage']
    """
    histories = histories_of(models)
    for label, history in histories.items():
        require_rounds(label, history)
    if against not in ("round", "depth"):
        raise ValueError(f"against must be 'round' or 'depth', got {against!r}")
    held = {
        label: all(entry["validation_error"] is not None for entry in history)
        for label, history in histories.items()
    }
    if validation:
        require_validation(held)
    on_held = all(held.values()) if validation is None else validation
    error, rows = ("validation_error", "validation") if on_held else ("train_error", "training")

    three = _three(axes)
    panels = {
        error: f"top-1 error ({rows})",
        "flops": "multiplications a prediction",
        "coverage": "coverage",
    }
    for ax, (key, title) in zip(three, panels.items(), strict=True):
        styles = zip(cycle(COLOURS), cycle(MARKERS), strict=False)
        for (label, history), (colour, marker) in zip(histories.items(), styles, strict=False):
            ax.plot(
                [entry[against] for entry in history],
                [entry[key] for entry in history],
                color=colour, marker=marker, ms=4, label=label or None,
            )  # fmt: skip
        ax.set(xlabel=against, ylabel=title)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        if key != "flops":
            ax.yaxis.set_major_formatter(PercentFormatter(1.0))
        tidy(ax)
    bottom, top = three[2].get_ylim()
    three[2].set_ylim(bottom, min(top, 1.0 + 0.05 * (1.0 - bottom)))  # nothing covers more than all
    if any(histories):
        three[0].legend(frameon=False)
    return three


def plot_mean_depth(
    models: Iterable[AdaptiveTree] | Mapping[Any, AdaptiveTree], ax: Axes | None = None
) -> Axes:
    """Draw the average depth of the leaves against μ, a line for each ρ and α (figure 6).

    Parameters
    ----------
    models : iterable of AdaptiveSoftmaxTreeClassifier, or dict of them
        Fitted, with different ``leaf_l1`` (μ), and possibly ``tolerance`` (ρ) and ``contraction``
        (α), by which they are told apart: a dict's keys do not matter.
    ax : Axes, optional
        By default, those of a new figure.

    Returns
    -------
    Axes
        Models that differ in none of the three, such as in their seed, are averaged; their range is
        shaded.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import AdaptiveSoftmaxTreeClassifier
    >>> from thinleaf.explain.plots import plot_mean_depth
    >>> X, y = load_digits(return_X_y=True)
    >>> models = [
    ...     AdaptiveSoftmaxTreeClassifier(leaf_l1=mu, max_rounds=1, random_state=0).fit(X, y)
    ...     for mu in (0.01, 1.0)
    ... ]
    >>> ax = plot_mean_depth(models)
    >>> ax.get_legend_handles_labels()[1]
    ['ρ = 1, α = 0.85']
    """
    runs: dict[tuple[float, float], dict[float, list[float]]] = {}
    for model in models.values() if isinstance(models, Mapping) else models:
        depth = summarize(tree_of(model)).mean_depth
        line = runs.setdefault((model.tolerance, model.contraction), {})
        if model.leaf_l1 is None:
            raise ValueError("depth is drawn against leaf_l1 (μ): fit models with different ones")
        line.setdefault(model.leaf_l1, []).append(depth)
    if not runs:
        raise ValueError("there is nothing to draw: give at least one fitted model")

    ax = new_axes() if ax is None else ax
    styles = zip(cycle(COLOURS), cycle(MARKERS), strict=False)
    for ((rho, alpha), line), (colour, marker) in zip(sorted(runs.items()), styles, strict=False):
        mu = sorted(line)
        means = [float(np.mean(line[m])) for m in mu]
        label = f"ρ = {rho:g}, α = {alpha:g}"
        ax.plot(mu, means, color=colour, marker=marker, ms=5, label=label)
        if any(len(depths) > 1 for depths in line.values()):
            lowest, highest = ([of(line[m]) for m in mu] for of in (min, max))
            ax.fill_between(mu, lowest, highest, color=colour, alpha=0.15, lw=0.0)
    _scale_by_decades(ax, {mu for line in runs.values() for mu in line})
    ax.set(xlabel=r"leaf penalty $\mu$", ylabel=r"average leaf depth $\Delta_{\mathrm{av}}$")
    ax.legend(frameon=False)
    return tidy(ax)


def _joined(label: str, rows: str) -> str:
    return f"{label}, {rows}" if label else rows


def _three(axes: Sequence[Axes] | None) -> tuple[Axes, Axes, Axes]:
    if axes is None:
        axes = list(Figure(figsize=(11.0, 3.4), layout="constrained").subplots(1, 3))
    if len(axes) != 3:
        raise ValueError(f"axes must be three, for error, cost and coverage, got {len(axes)}")
    return axes[0], axes[1], axes[2]


def _arrow(ax: Axes, x: float, y: float, text: str, colour: str) -> None:
    ax.annotate(
        text,
        (x, y),
        (0, 24),
        textcoords="offset points",
        ha="center",
        color=colour,
        fontsize="small",
        arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 1, "shrinkB": 4},
    )


def _training_handles(labels: Iterable[str], *, held: bool, arrows: bool) -> list[Line2D]:
    """Return a legend that names each colour and each kind of line once."""
    handles = [
        Line2D([], [], color=colour, lw=3, label=label)
        for label, colour in zip(labels, cycle(COLOURS), strict=False)
        if label
    ]
    handles.append(Line2D([], [], color=GREY, ls="--", lw=1.4, label="training"))
    if held:
        handles.append(Line2D([], [], color=GREY, label="validation"))
    if arrows:
        handles.append(
            Line2D([], [], color=GREY, ls="", marker=r"$\downarrow$", ms=9, label="leaves expanded")
        )
    return handles


def _scale_by_decades(ax: Axes, values: set[float]) -> None:
    """Scale an axis by logarithm, also if some values are zero."""
    positive = [value for value in values if value > 0.0]
    if len(positive) == len(values):
        ax.set_xscale("log")
    elif positive:
        ax.set_xscale("symlog", linthresh=min(positive), linscale=0.5)
