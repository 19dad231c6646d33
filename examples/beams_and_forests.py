"""
Fewer errors for more microseconds
==================================

One path, several paths, several trees: what each costs, and what it gains.
"""

# %%
# Thirty classes in 12 dimensions, each of several clouds, so that a linear model cannot tell them
# apart.

from __future__ import annotations

from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from thinleaf import SoftmaxForestClassifier, SoftmaxTreeClassifier
from thinleaf.explain.frontier import plot_frontier
from thinleaf.measuring.latency import model_latencies

X, y = make_classification(
    8_000, 12, n_informative=12, n_redundant=0, n_classes=30, n_clusters_per_class=3,
    class_sep=2.5, random_state=0,
)  # fmt: skip
X_train, X_test, y_train, y_test = train_test_split(X.astype("float32"), y, random_state=0)
linear = LogisticRegression(max_iter=300).fit(X_train, y_train)
print(f"linear model: test error {100 * (1 - linear.score(X_test, y_test)):.1f} %")

# %%
# Beams need no other training, and a forest holds its first trees.

tree = SoftmaxTreeClassifier(depth=4, max_sweeps=6, random_state=0)
forest = SoftmaxForestClassifier(tree, n_estimators=8, random_state=0).fit(X_train, y_train)
frozen = forest.freeze()
models = {
    "one tree": frozen.prefix(1),
    "beam of 2": frozen.prefix(1).with_beam(2),
    "beam of 4": frozen.prefix(1).with_beam(4),
    "2 trees": frozen.prefix(2),
    "4 trees": frozen.prefix(4),
    "8 trees": frozen,
}

points = {}
for name, model in models.items():
    single, _ = model_latencies(model, X_test)
    error = float((model.predict(X_test) != y_test).mean())
    points[name] = (single.median, error)
    print(f"{name}: test error {100 * error:.1f} %, {single.median:.1f} µs a prediction")

# %%
# Filled are those that no other beats in both. Microseconds are of the machine that made this
# page.

figure = plot_frontier(points).figure
figure.savefig("front.svg")
