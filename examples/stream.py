"""
A stream with new classes
=========================

A Recall Tree learns one example after the other. Half of the classes come later; a tree that
scores every class is beside it.
"""

# %%
# Examples of 100 classes; the second half of them appears in the middle of the stream.

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from thinleaf import OnlineOneVsAllClassifier, RecallTreeClassifier

rng = np.random.default_rng(0)
centres = rng.normal(size=(100, 30))
STEPS, SIZE = 60, 200


def batch(n_classes: int, n: int = SIZE) -> tuple[np.ndarray, np.ndarray]:
    """Return examples of the first classes."""
    y = rng.integers(n_classes, size=n)
    return (centres[y] + 0.7 * rng.normal(size=(n, 30))).astype("float32"), y


stream = [batch(50 if step < STEPS // 2 else 100) for step in range(STEPS)]

# %%
# Each batch is predicted before it is learned, so the error is honest.

models = {
    "Recall Tree": RecallTreeClassifier(random_state=0),
    "one-against-all": OnlineOneVsAllClassifier(),
}
errors: dict[str, list[float]] = {name: [] for name in models}
for name, model in models.items():
    for step, (X, y) in enumerate(stream):
        if step:
            errors[name].append(100 * np.mean(model.predict(X) != y))
        model.partial_fit(X, y)
X_test, y_test = batch(100, 2000)
for name, model in models.items():
    print(f"{name}: test error {100 * (1 - model.score(X_test, y_test)):.1f} %")

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
seen = SIZE * np.arange(1, STEPS)
for name, values in errors.items():
    ax.plot(seen, values, label=name)
ax.axvline(SIZE * STEPS // 2, color="grey", lw=1, ls="--")
ax.annotate("50 new classes", (SIZE * STEPS // 2, 95), (6, 0), textcoords="offset points")
ax.set(xlabel="examples learned", ylabel="error % of the next 200", ylim=(0, 100))
ax.legend(frameon=False, loc="center left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What the tree does for its errors: it scores a few candidates, where the other scores all
# classes. A snapshot of either can be frozen and served while the model goes on learning.

tree = models["Recall Tree"]
print(f"{tree.n_nodes_} nodes; a snapshot has {tree.freeze().nbytes / 1e3:.0f} kB")
