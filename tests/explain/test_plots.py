"""The figures show what the history and the tree say, and need no display."""

from __future__ import annotations

import copy
import io
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier
from thinleaf.explain.plots import (
    plot_growth,
    plot_leaf_classes,
    plot_mean_depth,
    plot_training,
)


def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600] / 16.0, y[:600]


def grown(**parameters):
    """Return a small tree that grows for a few rounds."""
    settings = {
        "contraction": 0.8,
        "decisions": "training",
        "leaf_l1": 3.0,
        "max_rounds": 3,
        "max_sweeps": 4,
        "validation_fraction": 0.2,
        "random_state": 0,
    }
    return AdaptiveSoftmaxTreeClassifier(**settings | parameters).fit(*digits())


@pytest.fixture(scope="module")
def adaptive():
    model = grown()
    assert model.history_[1]["accepted"] > 0  # else there would be nothing to see
    return model


@pytest.fixture(scope="module")
def blind():
    """Return an adaptive tree without validation rows."""
    return grown(validation_fraction=None, max_rounds=1)


@pytest.fixture(scope="module")
def fixed():
    model = SoftmaxTreeClassifier(2, 5, max_sweeps=3, validation_fraction=0.2, random_state=0)
    return model.fit(*digits())


@pytest.fixture(scope="module")
def models():
    """Return trees of two tolerances, each with two penalties."""
    return [
        grown(leaf_l1=mu, tolerance=rho, validation_fraction=None, max_rounds=1, max_sweeps=2)
        for rho in (1.0, 1.5)
        for mu in (3.0, 0.3)
    ]


def with_penalty(model, mu):
    """Return a model as if it had been fitted with another penalty."""
    other = copy.copy(model)
    other.leaf_l1 = mu
    return other


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# -- figure 2: plot_training -----------------------------------------------------------------------


def test_training_shows_the_errors_of_the_history(adaptive, fixed):
    drawn = lines(plot_training({"AST": adaptive, "ST": fixed}))
    assert set(drawn) == {
        "AST, training", "AST, validation", "ST, training", "ST, validation",
    }  # fmt: skip
    sweeps = [sweep for entry in adaptive.history_ for sweep in entry["sweeps"]]
    x, y = drawn["AST, training"].get_data()
    assert list(x) == list(range(1, len(sweeps) + 1))
    assert list(y) == [sweep["train_error"] for sweep in sweeps]
    x, y = drawn["AST, validation"].get_data()
    assert list(x) == list(np.cumsum([len(entry["sweeps"]) for entry in adaptive.history_]))
    assert list(y) == [entry["validation_error"] for entry in adaptive.history_]
    for rows, key in (("training", "train_error"), ("validation", "validation_error")):
        x, y = drawn[f"ST, {rows}"].get_data()
        assert list(x) == [entry["sweep"] for entry in fixed.history_]
        assert list(y) == [entry[key] for entry in fixed.history_]


def test_training_is_dashed_and_models_differ_in_colour(adaptive, fixed):
    ax = plot_training({"AST": adaptive, "ST": fixed})
    drawn = lines(ax)
    for label, line in drawn.items():
        assert line.get_linestyle() == ("--" if label.endswith("training") else "-")
    assert drawn["AST, training"].get_color() == drawn["AST, validation"].get_color()
    assert drawn["AST, training"].get_color() != drawn["ST, training"].get_color()
    assert legend_texts(ax) == ["AST", "ST", "training", "validation", "leaves expanded"]


def test_an_arrow_points_at_the_sweep_before_each_expansion(adaptive):
    arrows = plot_training(adaptive).texts
    ends = np.cumsum([len(entry["sweeps"]) for entry in adaptive.history_])
    expanding = [entry for entry in adaptive.history_ if entry["accepted"] > 0]
    assert [arrow.get_text() for arrow in arrows] == [f"+{e['accepted']}" for e in expanding]
    assert [arrow.xy[0] for arrow in arrows] == [ends[e["round"] - 1] for e in expanding]


def test_a_fixed_tree_has_no_arrows(fixed):
    ax = plot_training(fixed)
    assert not ax.texts
    assert legend_texts(ax) == ["training", "validation"]


def test_a_history_is_as_good_as_its_model(adaptive):
    assert png(plot_training(adaptive.history_).figure) == png(plot_training(adaptive).figure)


def test_validation_may_be_missing_unless_it_is_asked_for(adaptive, blind):
    assert set(lines(plot_training(blind))) == {"training"}
    assert set(lines(plot_training(adaptive, validation=False))) == {"training"}
    with pytest.raises(ValueError, match=r"'blind' has no validation error.*validation_frac"):
        plot_training({"AST": adaptive, "blind": blind}, validation=True)


# -- figure 3: plot_leaf_classes -------------------------------------------------------------------


def test_every_leaf_is_in_a_bubble(adaptive):
    tree = adaptive.tree_
    (bubbles,) = plot_leaf_classes(adaptive).collections
    leaves = set(zip(tree.node_depth[tree.is_leaf], tree.leaf_sizes, strict=True))
    assert {tuple(point) for point in bubbles.get_offsets()} == leaves


def test_the_mean_is_that_of_each_depth(adaptive):
    tree = adaptive.tree_
    depth, mean = lines(plot_leaf_classes(adaptive))["mean"].get_data()
    n_leaves = np.bincount(tree.node_depth[tree.is_leaf])[np.asarray(depth)]
    assert n_leaves @ mean == pytest.approx(tree.leaf_sizes.sum())


@pytest.mark.parametrize(
    "parameters",
    [
        {"validation_fraction": None},
        {"validation_fraction": None, "expansion_depth": 2},
        {"validation_fraction": None, "initial_contraction": 1.0, "initial_depth": 1},
    ],
)
def test_no_leaf_exceeds_the_maximum(parameters):
    model = grown(**parameters)
    tree = model.tree_
    depth, limit = lines(plot_leaf_classes(model))["theoretical maximum"].get_data()
    at_most = dict(zip(depth, limit, strict=True))
    for d, size in zip(tree.node_depth[tree.is_leaf], tree.leaf_sizes, strict=True):
        assert size <= at_most[d] + 1e-6


def test_the_maximum_contracts_from_the_initial_tree():
    model = grown(validation_fraction=None, initial_contraction=0.9, initial_depth=1)
    depth, limit = lines(plot_leaf_classes(model))["theoretical maximum"].get_data()
    expected = 9 * 0.8 ** np.maximum(np.asarray(depth) - 1.0, 0.0)
    np.testing.assert_allclose(limit, expected)


def test_a_fixed_tree_has_no_rounds(fixed):
    with pytest.raises(ValueError, match="only an adaptive tree has rounds"):
        plot_leaf_classes(fixed)


# -- figure 5: plot_growth -------------------------------------------------------------------------


@pytest.mark.parametrize("against", ["round", "depth"])
def test_panels_are_columns_of_the_history(adaptive, against):
    other = grown(contraction=0.6)
    models = {"0.8": adaptive, "0.6": other}
    axes = plot_growth(models, against=against)
    keys = ("validation_error", "flops", "coverage")
    for ax, key in zip(axes, keys, strict=True):
        assert ax.get_xlabel() == against
        for label, model in models.items():
            x, y = lines(ax)[label].get_data()
            assert list(x) == [entry[against] for entry in model.history_]
            assert list(y) == [entry[key] for entry in model.history_]
    assert legend_texts(axes[0]) == ["0.8", "0.6"]


def test_the_axis_says_which_rows(adaptive, blind):
    assert plot_growth(adaptive)[0].get_ylabel() == "top-1 error (validation)"
    for axes in (
        plot_growth(blind),
        plot_growth({"a": adaptive, "b": blind}),
        plot_growth(adaptive, validation=False),
    ):
        assert axes[0].get_ylabel() == "top-1 error (training)"


def test_one_model_needs_no_legend(adaptive):
    assert all(ax.get_legend() is None for ax in plot_growth(adaptive))


def test_growth_refuses_what_it_cannot_draw(adaptive, blind, fixed):
    with pytest.raises(ValueError, match="the model has no validation error"):
        plot_growth(blind, validation=True)
    with pytest.raises(ValueError, match="'ST' is one of sweeps"):
        plot_growth({"ST": fixed})
    with pytest.raises(ValueError, match="against must be"):
        plot_growth(adaptive, against="time")
    with pytest.raises(ValueError, match="axes must be three"):
        plot_growth(adaptive, Figure().subplots(1, 2))


# -- figure 6: plot_mean_depth ---------------------------------------------------------------------


def test_a_line_for_each_setting_and_a_point_for_each_penalty(models):
    drawn = lines(plot_mean_depth(models))
    assert list(drawn) == ["ρ = 1, α = 0.8", "ρ = 1.5, α = 0.8"]
    for line, (high, low) in zip(drawn.values(), (models[:2], models[2:]), strict=True):
        mu, depth = line.get_data()
        assert list(mu) == [0.3, 3.0]
        for drawn_depth, model in zip(depth, (low, high), strict=True):
            tree = model.tree_
            assert drawn_depth == pytest.approx(tree.node_depth[tree.is_leaf].mean())


def test_runs_of_one_setting_are_averaged_and_their_range_is_shaded(models):
    first, second = models[0], with_penalty(models[1], models[0].leaf_l1)
    ax = plot_mean_depth({"seed 0": first, "seed 1": second})
    depths = [m.tree_.node_depth[m.tree_.is_leaf].mean() for m in (first, second)]
    (line,) = ax.get_lines()
    assert line.get_ydata()[0] == pytest.approx(np.mean(depths))
    (band,) = ax.collections
    shaded = band.get_paths()[0].vertices[:, 1]
    assert (shaded.min(), shaded.max()) == pytest.approx((min(depths), max(depths)))


def test_no_penalty_is_drawn_too(models):
    without = [with_penalty(models[0], 0.0), *models[1:]]
    assert plot_mean_depth(without).get_xscale() == "symlog"
    assert plot_mean_depth(models).get_xscale() == "log"


# -- all of them -----------------------------------------------------------------------------------

ONE_AXES = [plot_training, plot_leaf_classes, lambda model, ax=None: plot_mean_depth([model], ax)]


@pytest.mark.parametrize("plot", ONE_AXES)
def test_given_axes_are_drawn_on(plot, adaptive):
    ax = Figure().add_subplot()
    assert plot(adaptive, ax) is ax
    assert ax.get_lines()


def test_three_given_axes_are_drawn_on(adaptive):
    axes = Figure().subplots(1, 3)
    assert plot_growth(adaptive, axes) == tuple(axes)
    assert all(ax.get_lines() for ax in axes)


@pytest.mark.parametrize("plot", [*ONE_AXES, lambda model: plot_growth(model)[0]])
def test_the_same_model_gives_the_same_image(plot, adaptive):
    assert png(plot(adaptive).figure) == png(plot(adaptive).figure)


@pytest.mark.parametrize("plot", [plot_training, plot_growth])
def test_histories_that_cannot_be_drawn(plot, adaptive):
    with pytest.raises(ValueError, match="the history of 'AST' is empty"):
        plot({"AST": []})
    with pytest.raises(ValueError, match="'AST' is not fitted"):
        plot({"AST": AdaptiveSoftmaxTreeClassifier()})
    with pytest.raises(ValueError, match="at least one fitted model"):
        plot({})
    with pytest.raises(ValueError, match="dict of label and model"):
        plot([adaptive, adaptive])


def test_trees_that_cannot_be_drawn():
    unfitted = AdaptiveSoftmaxTreeClassifier()
    with pytest.raises(ValueError, match="AdaptiveSoftmaxTreeClassifier is not fitted"):
        plot_leaf_classes(unfitted)
    with pytest.raises(ValueError, match="AdaptiveSoftmaxTreeClassifier is not fitted"):
        plot_mean_depth([unfitted])
    with pytest.raises(ValueError, match="at least one fitted model"):
        plot_mean_depth([])


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_the_library_does_not_import_matplotlib():
    code = (
        "import sys, thinleaf, thinleaf.explain\n"
        "thinleaf.AdaptiveSoftmaxTreeClassifier\n"
        "assert 'matplotlib' not in sys.modules"
    )
    assert run(code).returncode == 0


def test_pyplot_is_not_imported():
    code = (
        "import io, sys\n"
        "from thinleaf.explain.plots import plot_training\n"
        "ax = plot_training([{'train_error': 0.5, 'validation_error': None}])\n"
        "ax.figure.savefig(io.BytesIO())\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_without_matplotlib_the_error_says_what_to_install():
    done = run("import sys\nsys.modules['matplotlib'] = None\nimport thinleaf.explain.plots")
    assert 'pip install "thinleaf[plot]"' in done.stderr.splitlines()[-1]
