"""A label tree learned with embeddings of raw texts, beside Huffman's, written to a file and read.

Run it with ``python examples/label_tree.py``.
"""

from __future__ import annotations

import numpy as np

from thinleaf import LabelTreeClassifier, load_estimator

ANIMALS = ["cat", "dog", "horse", "sheep", "goat", "duck", "goose", "hen"]
TRADES = ["baker", "smith", "tailor", "weaver", "miller", "cooper", "mason", "carpenter"]
RIVERS = ["danube", "rhine", "elbe", "seine", "volga", "don", "loire", "rhone"]


def sentences(n_rows: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Return texts that name a thing of one of three kinds, and what they name."""
    rng = np.random.default_rng(seed)
    frames = {
        "on the farm lives a {}, it eats {} and makes noise {}": ANIMALS,
        "the {} works in {} street, ask there for {}": TRADES,
        "the {} flows through {} towns and {} locks": RIVERS,
    }
    texts, labels = [], []
    for _ in range(n_rows):
        frame = list(frames)[rng.integers(3)]
        thing = frames[frame][rng.integers(8)]
        texts.append(frame.format(thing, rng.integers(100), rng.integers(100)))
        labels.append(thing)
    return texts, np.array(labels)


def main() -> None:
    """Train two trees, print the learned one, and keep it in a file."""
    train, y_train = sentences(2000, seed=0)
    test, y_test = sentences(500, seed=1)
    for tree in ("huffman", "learned"):
        clf = LabelTreeClassifier(tree=tree, arity=3, dim=16, epochs=15, random_state=0)
        clf.fit(train, y_train)
        quality = clf.inspect()
        share = float(np.nanmean(quality.J / quality.J_max))
        error = float(np.mean(clf.predict(test) != y_test))
        print(f"{tree:8} test error {100 * error:.1f} %, J_n at {100 * share:.0f} % of its bound")
    print(clf.tree_text(n_top=6))
    clf.save("things.thinleaf")
    again = load_estimator("things.thinleaf")
    print(again.predict_topk(["the danube flows through 7 towns"], k=3))


if __name__ == "__main__":
    main()
