"""Figures of trees and predictions can be drawn and saved, whatever labels are called."""

from __future__ import annotations

import io

import numpy as np
import pytest

from tests.frozen_cases import real_rows, rich_forest, rich_model
from thinleaf import TextClassifier

pytest.importorskip("matplotlib")

from thinleaf.explain.axes import plain
from thinleaf.explain.class_map import plot_class_map, plot_leaf_sizes
from thinleaf.explain.path_figure import plot_path
from thinleaf.explain.tree_figure import plot_tree

HOSTILE = np.array(
    ["$x^2", "$\\bad{$", "</svg><script>", "\x00\n", "é" * 99, "_a_", "%", "{}", "\\"], object
)


def saved(figure, kind="svg") -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, dpi=40)
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_tree_is_drawn_with_hostile_names(kind):
    names = [str(HOSTILE[i % 9]) for i in range(30)]
    model = rich_model(1, labels=HOSTILE, feature_names=names)
    X = real_rows(2, 60, 30)
    content = saved(plot_tree(model, X).figure, kind)
    assert b"<script>" not in content
    saved(plot_class_map(model, X, HOSTILE[: 60 % 9].repeat(10)).figure, kind)
    saved(plot_class_map(model, kind="sunburst", max_leaves=4).figure, kind)
    saved(plot_path(model.explain(X[0])), kind)


def test_labels_stand_inside_the_figure():
    model = rich_model(1)
    ax = plot_tree(model, real_rows(2, 60, 30))
    width, height = ax.figure.get_size_inches()
    figure = ax.figure
    renderer = figure.canvas.get_renderer() if hasattr(figure.canvas, "get_renderer") else None
    for text in ax.texts:
        box = text.get_window_extent(renderer)
        assert box.x0 >= -1
        assert box.x1 <= width * figure.dpi + 1
        assert box.y0 >= -1
        assert box.y1 <= height * figure.dpi + 1


def test_weights_as_pictures():
    model = rich_model(1)
    ax = plot_tree(model, image_shape=(5, 6))
    n_routers = model.packed.n_nodes - model.n_leaves
    assert len(ax.images) >= n_routers
    saved(ax.figure, "png")
    with pytest.raises(ValueError, match="has 20 pixels"):
        plot_tree(model, image_shape=(4, 5))


def test_given_axes_are_drawn_on():
    model = rich_forest(range(2))
    ax = plot_leaf_sizes(model)
    assert plot_leaf_sizes(model, ax, tree=1) is ax
    assert plot_class_map(model, ax=ax) is ax
    assert plot_tree(model, ax=ax, tree=1) is ax
    with pytest.raises(ValueError, match="kind"):
        plot_class_map(model, kind="pie")


def test_long_paths_are_cut():
    texts = ["a broken arm", "a broken leg", "high fever", "yellow fever"] * 5
    model = TextClassifier(features="words", random_state=0).fit(texts, ["a", "b", "c", "d"] * 5)
    e = model.freeze(beam=2).explain("a $broken$ leg")
    assert plot_path(e).axes
    with pytest.raises(ValueError, match="path must be"):
        plot_path(e, path=9)


def test_plain():
    assert plain("$a\n$") == r"\$a \$"
    assert len(plain("x" * 99)) == 28
