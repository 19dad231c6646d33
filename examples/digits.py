"""
What is inside a tree
=====================

Handwritten digits, ten classes of 64 pixels: small enough to see every weight of a tree.
"""

# %%
# A linear model, a tree of fixed depth, and a tree that chooses its structure by held-out rows.
# Costs are multiplications of a prediction: a flat softmax looks at all pixels for all classes.

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier
from thinleaf.explain.class_map import plot_class_map
from thinleaf.explain.tree_figure import plot_tree
from thinleaf.measuring import metrics

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, random_state=0)

flat = LogisticRegression(C=1.0, max_iter=1000).fit(X_train, y_train)
fixed = SoftmaxTreeClassifier(depth=3, leaf_classes=4, random_state=0).fit(X_train, y_train)
clf = AdaptiveSoftmaxTreeClassifier(max_rounds=3, random_state=0).fit(X_train, y_train)

for name, model, cost in (
    ("flat softmax", flat, flat.coef_.size),
    ("softmax tree", fixed, fixed.mean_flops(X_test)),
    ("adaptive softmax tree", clf, clf.mean_flops(X_test)),
):
    error = 100 * (1 - model.score(X_test, y_test))
    print(f"{name}: test error {error:.1f} %, {cost:.0f} multiplications a prediction")

# %%
# A prediction is a few labels with probabilities.

labels, probabilities = clf.predict_topk(X_test[:3], k=3)
for truth, top, p in zip(y_test[:3], labels, probabilities, strict=True):
    answers = ", ".join(f"{digit} ({100 * q:.1f} %)" for digit, q in zip(top, p, strict=True))
    print(f"a {truth}: {answers}")

# %%
# The whole tree, its weights as pictures: red speaks for the lower branch or for the class, blue
# against it. Lines are as wide as rows are many.

print(metrics.summarize(clf.tree_))
figure = plot_tree(clf, X_train, y_train, image_shape=(8, 8)).figure
figure.savefig("digits_tree.svg")

# %%
# Where the digits live: an inner ring is a router, an outer one a leaf and its digits.

figure = plot_class_map(clf, X_train, y_train, kind="sunburst").figure
figure.savefig("digits_map.svg")
