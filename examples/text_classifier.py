"""
Texts, and when not to answer
=============================

Requests to a shop: from texts to a model file that answers single texts, and may say no.
"""

# %%
# Texts mix words of their topic with words of another, so some cannot be told.

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from thinleaf import TextClassifier, load

WORDS = {
    "delivery": "parcel late courier delivery address delayed shipped arrive",
    "refund": "refund money back return price cancel paid twice",
    "warranty": "broken warranty repair defect replace screen battery crack",
    "account": "password login account email locked reset profile name",
    "stock": "available stock size colour when again sold out",
}
OPENINGS = ["hello", "please", "i have a question about", "can you help with", "it is about", ""]


def requests(n: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return texts and what they are about."""
    rng = np.random.default_rng(seed)
    topics = rng.choice(list(WORDS), size=n).tolist()
    texts = []
    for topic in topics:
        own = rng.choice(WORDS[topic].split(), size=rng.integers(1, 4), replace=False)
        other = rng.choice(WORDS[rng.choice(list(WORDS))].split(), size=rng.integers(0, 3))
        texts.append(" ".join([rng.choice(OPENINGS), *rng.permutation([*own, *other])]).strip())
    return texts, topics


texts, topics = requests(2000)
train, test, y_train, y_test = train_test_split(texts, topics, random_state=0)

# %%
# The texts themselves choose between words, characters and both.

clf = TextClassifier(random_state=0).fit(train, y_train)
print(f"features: {clf.input_.features.kind}, {clf.input_.n_features:,}")
print(f"test error {1 - clf.score(test, y_test):.1%}")

clf.save("requests.thinleaf")
model = load("requests.thinleaf")
text = "my parcel is late, where is the courier?"
print(f"{text!r}: {model.predict_topk_one(text, k=2)}")

# %%
# ``reject`` is a wanted precision. The more it asks for, the fewer texts are answered; held-out
# texts of the training say where the limit is.

wanted = [0.82, 0.85, 0.88, 0.91, 0.94, 0.97]
answered, right = [], []
for precision in wanted:
    answers = model.predict(test, reject=precision)
    given = np.array([answer is not None for answer in answers])
    answered.append(given.mean())
    right.append(np.mean(answers[given] == np.array(y_test, dtype=object)[given]))

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(wanted, right, marker="o", label="right, of those answered")
ax.plot(wanted, answered, marker="s", label="answered")
ax.plot(wanted, wanted, color="grey", lw=1, ls="--", label="as wanted")
ax.set(xlabel="reject: the precision that is wanted", ylabel="share of the test texts")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Nonsense has no answer at all.

print(f"'asdfgh qwerty': {model.predict_one('asdfgh qwerty', reject=0.97)}")
