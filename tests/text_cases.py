"""Small made texts with labels for the tests."""

from __future__ import annotations

import numpy as np

TOPICS = {
    "card": "card stolen lost blocked pin chip",
    "loan": "loan mortgage rate credit house pay",
    "travel": "flight hotel ticket abroad visa trip",
    "phone": "phone number call app screen update",
}
FILLERS = ["my", "the", "a", "please", "i", "want", "help", "with", "is", "was"]


def made_texts(n: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return texts of some words of a topic and some of none, and their topics."""
    rng = np.random.default_rng(seed)
    names = list(TOPICS)
    texts, labels = [], []
    for i in range(n):
        label = names[i % len(names)]
        own = rng.choice(TOPICS[label].split(), size=2)
        other = rng.choice(TOPICS[names[rng.integers(len(names))]].split(), size=1)
        words = [*own, *other, *rng.choice(FILLERS, size=3)]
        texts.append(" ".join(rng.permutation(words)))
        labels.append(label)
    return texts, labels


def vowels(texts: list[str]) -> np.ndarray:
    """Return a dense row a text: a small encoder."""
    return np.array([[text.count(c) for c in "aeioucdhnlt"] for text in texts], dtype=float)
