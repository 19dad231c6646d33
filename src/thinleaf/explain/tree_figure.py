"""A tree, drawn: figure 4 of paper 000, and weight vectors as pictures as in slides 003.

The root is at the left. At each branch stand the features that lead there, at each leaf its classes
with their shares. Sizes are in inches, so words keep their size however large the tree is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from thinleaf._dtypes import AccumArray
from thinleaf.explain.axes import COLOURS, GREY, Axes, Figure, LineCollection, plain
from thinleaf.explain.outline import (
    CLOSED,
    LEAF,
    ROUTER,
    Counts,
    Outline,
    OutlineNode,
    outline,
    weight_picture,
)
from thinleaf.explain.overview import frozen_tree
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.importance import PackedRouters

__all__ = ["plot_tree"]

_LINE = 0.17
_PICTURE = 0.62
_COLUMN = (1.25, 2.1)
_LABELS = 3.4
_WIDEST = 16.0
_NODE = (0.02, 0.11)
_MARGIN = 0.25


def plot_tree(
    model: Any,
    X: Any = None,
    y: Any = None,
    ax: Axes | None = None,
    *,
    tree: int = 0,
    max_leaves: int = 500,
    n_features: int = 3,
    n_labels: int = 6,
    image_shape: tuple[int, int] | None = None,
) -> Axes:
    """Draw a tree: nodes by rows, the features at routers, the classes of leaves (figure 4).

    Parameters
    ----------
    model : FrozenTree or estimator
        A softmax tree, a forest or an online tree.
    X : rows or texts, optional
        What is counted at the nodes; without it, a node is as large as it has leaves below.
    y : array-like, optional
        Labels of the rows; without them, shares are those of predicted classes.
    ax : Axes, optional
        By default, those of a new figure that is as large as the tree needs.
    tree : int
        Which tree of a forest.
    max_leaves : int
        Above this, the subtrees that the fewest rows reach are closed.
    n_features, n_labels : int
        How many features at a branch and classes of a leaf are named.
    image_shape : (int, int), optional
        Height and width, if features are the pixels of pictures: weights are then drawn as such,
        those of routers, and of the most frequent classes of a leaf; blue speaks for the upper
        branch or against the class, red for the lower one or for the class.

    Returns
    -------
    Axes
        In inches; save with ``ax.figure.savefig("tree.svg")``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from thinleaf import AdaptiveSoftmaxTreeClassifier
    >>> from thinleaf.explain.tree_figure import plot_tree
    >>> X, y = load_digits(return_X_y=True)
    >>> ast = AdaptiveSoftmaxTreeClassifier(max_rounds=1, random_state=0).fit(X, y)
    >>> ax = plot_tree(ast, X, y, image_shape=(8, 8))
    >>> ax.figure.savefig("tree.svg")  # doctest: +SKIP
    """
    frozen = frozen_tree(model)
    if image_shape is not None and image_shape[0] * image_shape[1] != frozen.n_features:
        raise ValueError(
            f"image_shape {image_shape} has {image_shape[0] * image_shape[1]} pixels, but there "
            f"are {frozen.n_features} features"
        )
    counts = Counts(frozen, X, y)
    shown = outline(
        frozen,
        counts,
        tree=tree,
        max_leaves=max_leaves,
        n_features=n_features if image_shape is None else 0,
        n_labels=n_labels,
    )
    return _Drawing(frozen, shown, image_shape, n_labels).drawn(ax)


class _Drawing:
    """Where things stand, in inches, and how they are drawn."""

    def __init__(
        self, model: FrozenTree, shown: Outline, image_shape: tuple[int, int] | None, n_labels: int
    ) -> None:
        self._model, self._outline, self._image_shape = model, shown, image_shape
        self._line = min(max(6.0 / shown.n_lines, _LINE), 1.7 * _LINE)
        self._font = 6.0 * min(self._line / _LINE, 1.35)
        if image_shape is not None:
            self._line, self._font = _PICTURE + 0.12, 6.0
        self._letter = 0.0095 * self._font  # inches that a letter takes, on average
        self._left = _MARGIN if image_shape is None else _MARGIN + _PICTURE / 2
        low, high = _COLUMN if image_shape is None else (0.8, 1.1)
        column = (_WIDEST - _LABELS) / max(shown.depth, 1)
        self._column = min(max(column, low), high)
        largest = max((len(_label_words(node)) for node in shown.nodes), default=0)
        words = min(1.05 * self._letter * largest + 0.4, 9.0)
        if image_shape is not None:
            words = n_labels * (_PICTURE + 0.08) + 0.4
        self._width = self._left + _MARGIN + shown.depth * self._column + words + 0.2
        self._height = 2 * _MARGIN + shown.n_lines * self._line + 0.25
        self._most = max(node.rows for node in shown.nodes)
        self._parents = {node.node: node for node in shown.nodes}
        self._at = {node.node: self._place(node) for node in shown.nodes}

    def _place(self, node: OutlineNode) -> tuple[float, float]:
        x = self._left + node.depth * self._column
        return x, self._height - _MARGIN - 0.25 - (node.line + 0.5) * self._line

    def drawn(self, ax: Axes | None) -> Axes:
        """Draw everything."""
        if ax is None:
            figure = Figure(figsize=(self._width, self._height))
            ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        ax.set_axis_off()
        self._branches(ax)
        if self._image_shape is not None:
            self._pictures(ax)
        for node in self._outline.nodes:
            self._words(ax, node)
        self._nodes(ax)
        ax.text(_MARGIN, self._height - 0.12, self._title(), fontsize=8, va="center", color=GREY)
        ax.set_xlim(0.0, self._width)
        ax.set_ylim(0.0, self._height)
        ax.set_aspect("equal")
        return ax

    def _title(self) -> str:
        shown = self._outline
        said = f"{shown.n_leaves:,} leaves, {self._model.n_classes:,} classes"
        if shown.counted:
            said += f"; {shown.nodes[0].rows:,.0f} rows"
        if shown.n_shown < shown.n_leaves:
            said += f"; {shown.n_shown:,} leaves are shown"
        return said

    def _share(self, node: OutlineNode) -> float:
        return node.rows / self._most if self._most else 0.0

    def _radius(self, node: OutlineNode) -> float:
        return _NODE[0] + (_NODE[1] - _NODE[0]) * float(np.sqrt(self._share(node)))

    def _branches(self, ax: Axes) -> None:
        lines, widths, colours = [], [], []
        for node in self._outline.nodes:
            if node.parent < 0:
                continue
            (x0, y0), (x1, y1) = self._at[node.parent], self._at[node.node]
            lines.append([(x0, y0), (x0, y1), (x1, y1)])
            widths.append(0.5 + 4.0 * self._share(node))
            colours.append(COLOURS[1] if node.side == "left" else COLOURS[0])
        ax.add_collection(
            LineCollection(lines, linewidths=widths, colors=colours, alpha=0.55, zorder=1)
        )

    def _nodes(self, ax: Axes) -> None:
        for kind, marker in ((ROUTER, "o"), (LEAF, "s"), (CLOSED, ">")):
            if kind == ROUTER and self._image_shape is not None:
                continue
            nodes = [node for node in self._outline.nodes if node.kind == kind]
            if not nodes:
                continue
            x, y = zip(*(self._at[node.node] for node in nodes), strict=True)
            radius = [72 * self._radius(node) for node in nodes]
            colour = "#ffffff" if kind == ROUTER else GREY if kind == CLOSED else COLOURS[2]
            ax.scatter(
                x, y, s=[np.pi * r**2 for r in radius], marker=marker, color=colour,
                edgecolors=GREY, linewidths=0.7, zorder=3,
            )  # fmt: skip

    def _words(self, ax: Axes, node: OutlineNode) -> None:
        x, y = self._at[node.node]
        if node.features:
            start = self._at[node.parent][0] + self._radius(self._parents[node.parent]) + 0.03
            room = x - start - self._radius(node) - 0.02
            letter = 0.85 * self._letter
            text = _fitting((plain(name, 16) for name, _ in node.features), room, letter)
            size = 0.85 * self._font
            ax.text(start, y + 0.02, text, fontsize=size, va="bottom", color="#333333", zorder=4)
        if node.kind == ROUTER:
            return
        if node.kind == LEAF and self._image_shape is not None:
            return
        text = _label_words(node)
        colour = GREY if node.kind == CLOSED else "#000000"
        right = x + 0.06 + self._radius(node)
        ax.text(right, y, text, fontsize=self._font, va="center", color=colour, zorder=4)

    # -- weights as pictures -----------------------------------------------------------------------

    def _pictures(self, ax: Axes) -> None:
        packed, routers = self._model.packed, PackedRouters(self._model.packed)
        names = self._model.labels.tolist()
        ids = {label: i for i, label in enumerate(names)}
        for node in self._outline.nodes:
            x, y = self._at[node.node]
            if node.kind == ROUTER:
                router = routers[node.node]
                self._picture(ax, x, y, self._as_picture(router.weights, router.features))
            elif node.kind == LEAF:
                leaf = packed.leaf(-1 - int(packed.child[node.node]))
                weights = leaf.weights - leaf.weights.mean(axis=1, keepdims=True)
                at = x + _PICTURE / 2 + 0.12
                for label, share in node.labels:
                    slot = np.flatnonzero(leaf.classes == ids.get(label, -1))
                    if slot.size == 0:
                        continue
                    picture = self._as_picture(weights[:, slot[0]], leaf.features)
                    self._picture(ax, at, y + 0.04, picture, _PICTURE - 0.1)
                    said = plain(label, 10) + ("" if share is None else f" ({100 * share:.0f} %)")
                    ax.text(at, y - _PICTURE / 2 + 0.02, said, fontsize=5, ha="center", va="center")
                    at += _PICTURE + 0.08

    def _as_picture(self, weights: Any, features: Any) -> AccumArray:
        assert self._image_shape is not None
        return weight_picture(weights, features, self._image_shape)

    def _picture(
        self, ax: Axes, x: float, y: float, picture: AccumArray, size: float = _PICTURE
    ) -> None:
        height, width = picture.shape
        scale = size / max(height, width)
        w, h = width * scale / 2, height * scale / 2
        most = float(np.quantile(np.abs(picture), 0.98)) or float(np.abs(picture).max()) or 1.0
        ax.imshow(
            picture, extent=(x - w, x + w, y - h, y + h), cmap="RdBu_r", vmin=-most, vmax=most,
            interpolation="nearest", zorder=2,
        )  # fmt: skip


def _fitting(names: Iterable[str], width: float, letter: float) -> str:
    """Return as many names as a width in inches has room for, but one at least."""
    text = ""
    for name in names:
        longer = f"{text}, {name}" if text else name
        if text and letter * len(longer) > width:
            break
        text = longer
    if letter * len(text) <= width:
        return text
    return text[: max(int(width / letter) - 1, 3)] + "…"


def _label_words(node: OutlineNode) -> str:
    if node.kind == ROUTER:
        return ""
    parts = [
        plain(label, 18) + ("" if share is None else f" ({100 * share:.0f} %)")
        for label, share in node.labels
    ]
    left = node.n_classes - len(node.labels)
    if node.kind == CLOSED:
        said = ": " + ", ".join(parts) if parts else ""
        return f"{node.n_leaves:,} leaves, {node.n_classes:,} classes{said}"
    return ", ".join(parts) + (f" and {left:,} more" if left > 0 else "")
