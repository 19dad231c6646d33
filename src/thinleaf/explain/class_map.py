"""Where classes live: a tree as an icicle or a sunburst, and the sizes of its leaves by depth."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from thinleaf.explain.axes import (
    COLOURS,
    GREY,
    Axes,
    Figure,
    MaxNLocator,
    PatchCollection,
    Rectangle,
    Wedge,
    new_axes,
    plain,
    tidy,
)
from thinleaf.explain.outline import CLOSED, LEAF, ROUTER, Counts, Outline, OutlineNode, outline
from thinleaf.explain.overview import frozen_tree

__all__ = ["plot_class_map", "plot_leaf_sizes"]

_GOLDEN = 0.618033988749895
_LETTER = 0.085
"""Inches that a line of labels needs."""


def plot_class_map(
    model: Any,
    X: Any = None,
    y: Any = None,
    ax: Axes | None = None,
    *,
    kind: Literal["icicle", "sunburst"] = "icicle",
    tree: int = 0,
    max_leaves: int = 500,
) -> Axes:
    """Draw where classes live: each node as wide as its rows, at leaves the shares of classes.

    Parameters
    ----------
    model : FrozenTree or estimator
    X, y : optional
        Rows that are counted, and their labels, as for
        :func:`~thinleaf.explain.tree_figure.plot_tree`. Without them, leaves are equally wide.
    ax : Axes, optional
        By default, those of a new figure.
    kind : {"icicle", "sunburst"}
        From left to right, or from the centre out.
    tree, max_leaves : int
        As for :func:`~thinleaf.explain.tree_figure.plot_tree`.

    Returns
    -------
    Axes
        A class has one colour wherever it is; names of the most frequent classes of a leaf stand
        beside it where there is room.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import AdaptiveSoftmaxTreeClassifier
    >>> from thinleaf.explain.class_map import plot_class_map
    >>> X, y = load_digits(return_X_y=True)
    >>> ast = AdaptiveSoftmaxTreeClassifier(max_rounds=1, random_state=0).fit(X, y)
    >>> ax = plot_class_map(ast, X, y, kind="sunburst")
    """
    if kind not in ("icicle", "sunburst"):
        raise ValueError(f"kind must be 'icicle' or 'sunburst', got {kind!r}")
    frozen = frozen_tree(model)
    shown = outline(
        frozen, Counts(frozen, X, y), tree=tree, max_leaves=max_leaves, n_features=0, n_labels=12
    )
    round_ = kind == "sunburst"
    if ax is None:
        width, height = (7.0, 7.0) if round_ else (7.0, min(max(4.0, 0.1 * shown.n_lines), 12.0))
        figure = Figure(figsize=(width, height))
        ax = figure.add_axes((0.1 / width, 0.1 / height, 1 - 0.2 / width, 1 - 0.4 / height))
    draw = _Map(shown, frozen.labels.tolist(), round_)
    draw.on(ax)
    said = f"{shown.n_leaves:,} leaves, {frozen.n_classes:,} classes"
    if shown.n_shown < shown.n_leaves:
        said += f"; {shown.n_shown:,} leaves are shown"
    ax.set_title(said, fontsize=8, color=GREY, loc="left")
    return ax


class _Map:
    """Pieces of an icicle, or of a sunburst, which is one bent around the root."""

    def __init__(self, shown: Outline, labels: list[Any], round_: bool) -> None:
        self._shown, self._round = shown, round_
        self._colour_of = {label: _colour(i) for i, label in enumerate(labels)}
        self._columns = shown.depth + 2
        total = max(shown.nodes[0].rows, 1e-12)
        self._span: dict[int, tuple[float, float]] = {}
        taken: dict[int, float] = {}
        for node in shown.nodes:  # parents first, the left child before the right
            begin = 0.0 if node.parent < 0 else taken[node.parent]
            share = node.rows / total
            self._span[node.node] = begin, begin + share
            taken[node.node] = begin
            if node.parent >= 0:
                taken[node.parent] = begin + share

    def on(self, ax: Axes) -> None:
        patches: list[Any] = []
        colours: list[Any] = []
        for node in self._shown.nodes:
            begin, end = self._span[node.node]
            if end - begin <= 0.0:
                continue
            last = self._columns - 1 if node.kind != ROUTER else node.depth + 1
            patches.append(self._piece(begin, end, node.depth, last))
            colours.append(_NODE_COLOURS[node.kind])
            if node.kind == ROUTER:
                continue
            at = begin
            for label, share in node.labels:
                width = (end - begin) * (1.0 / len(node.labels) if share is None else share)
                patches.append(self._piece(at, at + width, self._columns - 1, self._columns))
                colours.append(self._colour_of.get(label, "#bbbbbb"))
                at += width
            if end - at > 1e-9:
                patches.append(self._piece(at, end, self._columns - 1, self._columns))
                colours.append("#e8e8e8")
            self._name(ax, node, begin, end)
        ax.add_collection(
            PatchCollection(patches, facecolors=colours, edgecolors="#ffffff", linewidths=0.3)
        )
        ax.set_axis_off()
        if self._round:
            longest = max((len(_words(node)) for node in self._shown.nodes), default=0)
            edge = 1.08 + 0.018 * longest
            ax.set_xlim(-edge, edge)
            ax.set_ylim(-edge, edge)
            ax.set_aspect("equal")
        else:
            ax.set_xlim(0.0, 1.3)
            ax.set_ylim(0.0, 1.0)

    def _piece(self, begin: float, end: float, first: int, last: int) -> Any:
        if self._round:
            inner, outer = ((c + 0.4) / (self._columns + 0.4) for c in (first, last))
            if first == 0:
                inner = 0.0
            return Wedge(
                (0.0, 0.0), outer, 90.0 - 360.0 * end, 90.0 - 360.0 * begin, width=outer - inner
            )
        x = first / self._columns
        return Rectangle((x, 1.0 - end), (last - first) / self._columns, end - begin)

    def _name(self, ax: Axes, node: OutlineNode, begin: float, end: float) -> None:
        """Name the most frequent classes of a leaf, if there is room for a line."""
        inches = 15.0 if self._round else float(ax.get_window_extent().height) / ax.figure.dpi
        label = _words(node)
        if not label or (end - begin) * inches < _LETTER:
            return
        middle = (begin + end) / 2.0
        if not self._round:
            ax.text(1.01, 1.0 - middle, label, fontsize=6, va="center")
            return
        angle = 90.0 - 360.0 * middle
        x, y = (1.02 * f(np.radians(angle)) for f in (np.cos, np.sin))
        flipped = 90.0 < angle % 360.0 < 270.0
        ax.text(
            x, y, label, fontsize=6, va="center", ha="right" if flipped else "left",
            rotation=angle + 180.0 if flipped else angle, rotation_mode="anchor",
        )  # fmt: skip


def _words(node: OutlineNode) -> str:
    """Return the most frequent classes of a leaf, or of what is closed."""
    least = 0.6 * (node.labels[0][1] or 0.0) if node.labels else 0.0
    often = [label for label, share in node.labels[:3] if share is None or share >= least]
    said = ", ".join(plain(label, 20) for label in often)
    return f"{said} … ({node.n_leaves:,} leaves)" if node.kind == CLOSED else said


_NODE_COLOURS = {ROUTER: "#d9e2ec", LEAF: "#b8d8c8", CLOSED: "#c9c9c9"}


def _colour(i: int) -> tuple[float, float, float]:
    """Return the colour of a class: hues far apart for classes that follow each other."""
    from colorsys import hls_to_rgb

    hue = (0.07 + _GOLDEN * i) % 1.0
    return hls_to_rgb(hue, 0.45 + 0.2 * ((i * 7) % 3) / 2.0, 0.55)


def plot_leaf_sizes(model: Any, ax: Axes | None = None, *, tree: int | None = None) -> Axes:
    """Draw how many classes leaves hold by depth, of any tree or forest (figure 3).

    :func:`~thinleaf.explain.plots.plot_leaf_classes` adds what an adaptive tree could hold.

    Parameters
    ----------
    model : FrozenTree or estimator
    ax : Axes, optional
        By default, those of a new figure.
    tree : int, optional
        One tree of a forest; by default, all.

    Returns
    -------
    Axes
        A circle is as large as there are leaves of a size at a depth; the line is their mean.
    """
    frozen = frozen_tree(model)
    packed = frozen.packed
    depth = packed.node_depth[packed.child < 0]
    size = np.diff(packed.class_ptr)
    if tree is not None:
        shown = outline(frozen, Counts(frozen), tree=tree, max_leaves=packed.n_leaves)
        number = np.cumsum(packed.child < 0) - 1
        leaves = [int(number[node.node]) for node in shown.nodes if node.kind == LEAF]
        depth, size = depth[leaves], size[leaves]
    (at, classes), n_leaves = np.unique([depth, size], axis=1, return_counts=True)
    depths = np.unique(depth)
    ax = new_axes() if ax is None else ax
    ax.plot(
        depths, [float(size[depth == d].mean()) for d in depths], "-", color=COLOURS[1],
        label="mean",
    )  # fmt: skip
    area = 18.0 + 300.0 * (n_leaves - 1) / max(n_leaves.max() - 1, 1)
    ax.scatter(
        at, classes, s=area, color=COLOURS[1], alpha=0.45, lw=0.0, zorder=3,
        label="leaves (larger: more of them)",
    )  # fmt: skip
    ax.set(xlabel="depth", ylabel="classes in a leaf")
    if size.max() > 50:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0.0, 1.1 * float(size.max()))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.legend(frameon=False)
    return tidy(ax)
