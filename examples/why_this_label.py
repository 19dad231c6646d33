"""
Why this label
==============

A tree can be followed: a few decisions, then a few candidates. What each word adds is exact.
"""

# %%
# Short diagnoses: a part of the body and what is the matter with it. A tenth has a wrong label.

from __future__ import annotations

import numpy as np
from sklearn.model_selection import train_test_split

from thinleaf import SoftmaxTreeClassifier, TextClassifier
from thinleaf.explain.errors import error_causes
from thinleaf.explain.path_figure import plot_path

PARTS = ["arm", "leg", "hand", "foot", "knee", "shoulder", "finger", "toe"]
TROUBLES = {
    "fracture": ["broken", "fractured", "cracked bone in the"],
    "burn": ["burnt", "scalded", "burn of the"],
    "sprain": ["sprained", "twisted", "strained"],
}
rng = np.random.default_rng(0)
texts, labels = [], []
for _ in range(2400):
    part, trouble = rng.choice(PARTS), rng.choice(list(TROUBLES))
    side = rng.choice(["left", "right", "", "both sides,"])
    texts.append(
        f"{rng.choice(TROUBLES[trouble])} {side} {part} {rng.choice(['', 'at work', 'at home'])}"
    )
    labels.append(f"{trouble if rng.random() < 0.9 else rng.choice(list(TROUBLES))} {part}")
train, test, y_train, y_test = train_test_split(texts, labels, random_state=0)

tree = SoftmaxTreeClassifier(depth=3, leaf_classes=8, random_state=0)
clf = TextClassifier(tree, features="words", random_state=0).fit(train, y_train)
print(f"test error {100 * (1 - clf.score(test, y_test)):.1f} %")

# %%
# One prediction in words, and what would have to be otherwise for another label.

model = clf.freeze()
why = model.explain("twisted left knee at home", against="burn knee")
print(why)

# %%
# The same as a figure: a panel for each router on the path, and for candidates of the leaf.

figure = plot_path(why)
figure.savefig("why.svg")

# %%
# Over all test texts: do routers lose the right label, or is it beaten in the leaf?

print(error_causes(clf, test, y_test))
