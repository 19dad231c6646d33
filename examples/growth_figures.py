"""
How adaptive trees grow
=======================

Four figures of the paper of adaptive softmax trees, on handwritten digits.

A strong penalty makes the leaves so sparse that a tree must grow to do well. Trees grow as in the
paper, by the errors of the rows that they are fitted to. It is no setting for the lowest error.
"""

# %%
# An adaptive tree for each of three contractions: how much thinner leaves become in an expansion.

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier
from thinleaf.explain import plots

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, random_state=0)
common = {"leaf_l1": 10.0, "validation_fraction": 0.2, "patience": 30, "random_state": 0}


def grown(alpha: float, **others: Any) -> AdaptiveSoftmaxTreeClassifier:
    """Return a tree that grew as in the paper."""
    as_in_the_paper = {"decisions": "training", "max_rounds": 5, "contraction": alpha}
    parameters = common | as_in_the_paper | others
    return AdaptiveSoftmaxTreeClassifier(**parameters).fit(X_train, y_train)


by_contraction = {f"α = {alpha}": grown(alpha) for alpha in (0.5, 0.65, 0.8)}

# %%
# Beside the last of them, a tree of fixed structure with its widest leaf everywhere, and one that
# has its structure from the start.

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

# %%
# Errors over the sweeps, with arrows where leaves were expanded; and how many classes leaves hold
# by depth.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), width_ratios=[2, 1], layout="constrained"
)
plots.plot_training(models, left)
plots.plot_leaf_classes(adaptive, right)
plt.show()

# %%
# Error, cost and coverage over the rounds.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
plots.plot_growth(by_contraction, axes)
plt.show()

# %%
# Stronger penalties need deeper trees.

by_penalty = [
    grown(alpha, leaf_l1=mu, max_rounds=3, max_sweeps=8, random_state=seed)
    for alpha in (0.65, 0.8)
    for mu in (0.3, 3.0, 30.0)
    for seed in range(2)
]
figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
plots.plot_mean_depth(by_penalty, ax)
plt.show()
