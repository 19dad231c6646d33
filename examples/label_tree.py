"""
A tree over labels
==================

A label tree learned together with embeddings of raw texts, beside Huffman's.
"""

# %%
# Texts name a thing of one of three kinds: the words around it say the kind.

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from thinleaf import LabelTreeClassifier, load_estimator

ANIMALS = ["cat", "dog", "horse", "sheep", "goat", "duck", "goose", "hen"]
TRADES = ["baker", "smith", "tailor", "weaver", "miller", "cooper", "mason", "carpenter"]
RIVERS = ["danube", "rhine", "elbe", "seine", "volga", "don", "loire", "rhone"]
FRAMES = {
    "on the farm lives a {}, it eats {} and makes noise {}": ANIMALS,
    "the {} works in {} street, ask there for {}": TRADES,
    "the {} flows through {} towns and {} locks": RIVERS,
}


def sentences(n_rows: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Return texts, and what they name."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n_rows):
        frame = list(FRAMES)[rng.integers(3)]
        thing = FRAMES[frame][rng.integers(8)]
        texts.append(frame.format(thing, rng.integers(100), rng.integers(100)))
        labels.append(thing)
    return texts, np.array(labels)


train, y_train = sentences(2000, seed=0)
test, y_test = sentences(500, seed=1)

# %%
# Both trees have three children a node. The criterion J says how balanced and how pure nodes are;
# it has a bound.

shares = {}
for tree in ("huffman", "learned"):
    clf = LabelTreeClassifier(tree=tree, arity=3, dim=16, epochs=15, random_state=0)
    clf.fit(train, y_train)
    quality = clf.inspect()
    shares[tree] = quality.J / quality.J_max
    error = float(np.mean(clf.predict(test) != y_test))
    mean = 100 * float(np.nanmean(shares[tree]))
    print(f"{tree:8} test error {100 * error:.1f} %, J at {mean:.0f} % of its bound")

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for tree, share in shares.items():
    ax.plot(np.sort(100 * share[np.isfinite(share)])[::-1], marker="o", label=tree)
ax.set(xlabel="nodes, best first", ylabel="J in % of its bound", ylim=(0, 105))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The learned tree has found the three kinds.

print(clf.tree_text(n_top=6))

# %%
# It is kept in a file, and goes on from there.

clf.save("things.thinleaf")
again = load_estimator("things.thinleaf")
print(again.predict_topk(["the danube flows through 7 towns"], k=3))
