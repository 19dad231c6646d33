"""How adaptive trees grow on handwritten digits: four figures of the paper in one image.

A strong penalty makes the leaves so sparse that a tree must grow to do well. Trees grow as in the
paper, by the errors of the rows that they are fitted to. It is no setting for the lowest error. Run
it with ``python examples/growth_figures.py``; it writes ``growth_figures.png``, and needs
``pip install "thinleaf[plot]"``.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier
from thinleaf.explain import plots


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, random_state=0)
    common = {"leaf_l1": 10.0, "validation_fraction": 0.2, "patience": 30, "random_state": 0}

    def grown(alpha: float, **others: Any) -> AdaptiveSoftmaxTreeClassifier:
        as_in_the_paper = {"decisions": "training", "max_rounds": 5, "contraction": alpha}
        parameters = common | as_in_the_paper | others
        return AdaptiveSoftmaxTreeClassifier(**parameters).fit(X_train, y_train)

    by_contraction = {f"α = {alpha}": grown(alpha) for alpha in (0.5, 0.65, 0.8)}
    by_penalty = [
        grown(alpha, leaf_l1=mu, max_rounds=3, max_sweeps=8, random_state=seed)
        for alpha in (0.65, 0.8)
        for mu in (0.3, 3.0, 30.0)
        for seed in range(2)
    ]

    adaptive = by_contraction["α = 0.8"]
    widest = int(adaptive.tree_.leaf_sizes.max())
    fixed = SoftmaxTreeClassifier(adaptive.tree_.depth, widest, **common)
    control = SoftmaxTreeClassifier(structure=adaptive.tree_, **common)
    models = {
        "AST": adaptive,
        "ST": fixed.fit(X_train, y_train),
        "ST (from AST)": control.fit(X_train, y_train),
    }
    for name, model in models.items():
        error = 100 * (1 - model.score(X_test, y_test))
        cost = model.mean_flops(X_test)
        print(f"{name}: test error {error:.1f} %, {cost:.0f} multiplications a prediction")

    figure = Figure(figsize=(13, 8), layout="constrained")
    upper, lower = figure.subfigures(2, 1)
    training, leaves, depth = upper.subplots(1, 3, width_ratios=[2, 1, 1])
    plots.plot_training(models, training)
    plots.plot_leaf_classes(adaptive, leaves)
    plots.plot_mean_depth(by_penalty, depth)
    plots.plot_growth(by_contraction, lower.subplots(1, 3))
    figure.savefig("growth_figures.png", dpi=120)
    print("figures: growth_figures.png")


if __name__ == "__main__":
    main()
