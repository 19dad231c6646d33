"""Handwritten digits: small trees on dense rows, and what is inside one of them.

Run it with ``python examples/digits.py``.
"""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier, Tree
from thinleaf.measuring import metrics


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

    flat = LogisticRegression(C=1.0, max_iter=1000).fit(X_train, y_train)
    fixed = SoftmaxTreeClassifier(depth=3, leaf_classes=4, random_state=0).fit(X_train, y_train)
    clf = AdaptiveSoftmaxTreeClassifier(max_rounds=3, random_state=0, verbose=1)
    clf.fit(X_train, y_train)

    for name, model, cost in (
        ("flat softmax", flat, flat.coef_.size),
        ("softmax tree", fixed, fixed.mean_flops(X_test)),
        ("adaptive softmax tree", clf, clf.mean_flops(X_test)),
    ):
        error = 100 * (1 - model.score(X_test, y_test))
        print(f"{name}: test error {error:.1f} %, {cost:.0f} multiplications a prediction")

    labels, probabilities = clf.predict_topk(X_test[:3], k=3)
    for truth, top, p in zip(y_test[:3], labels, probabilities, strict=True):
        answers = ", ".join(f"{digit} ({100 * q:.1f} %)" for digit, q in zip(top, p, strict=True))
        print(f"a {truth}: {answers}")

    print(metrics.summarize(clf.tree_))
    show(clf.tree_)


def show(tree: Tree, node: int = 0) -> None:
    """Print a tree, a line a node."""
    indent = "  " * int(tree.node_depth[node])
    if tree.is_leaf[node]:
        leaf = tree.leaf(node)
        print(f"{indent}leaf {node}: classes {leaf.classes.tolist()}, {leaf.features.size} pixels")
        return
    print(f"{indent}router {node}: {tree.router(node).features.size} pixels")
    for child in tree.children[node].tolist():
        show(tree, child)


if __name__ == "__main__":
    main()
