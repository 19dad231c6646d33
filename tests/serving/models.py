"""Small models of every kind that is served, and their files."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

from thinleaf import LabelTreeClassifier, SoftmaxTreeClassifier, TextClassifier

TEXTS = ["a broken arm", "a broken leg", "high fever", "yellow fever", "a red rash", "dry skin"] * 8
LABELS = ["fracture", "fracture", "fever", "fever", "skin", "skin"] * 8


@functools.cache
def text_model(other: bool = False) -> Any:
    """Return a model of texts; another one has other labels."""
    labels = [f"other {label}" for label in LABELS] if other else LABELS
    tree = SoftmaxTreeClassifier(depth=1, max_sweeps=3, random_state=0)
    return TextClassifier(tree, features="words").fit(TEXTS, labels).freeze()


@functools.cache
def rejecting_model() -> Any:
    """Return a model of texts that knows when to reject: of some, labels are drawn at random."""
    rng = np.random.default_rng(0)
    words = ["arm", "leg", "toe", "fever", "rash", "skin", "dry", "red", "high", "yellow"]
    texts = [" ".join(rng.choice(words, 4)) for _ in range(600)]
    labels = [text.split()[0] if rng.random() < 0.8 else str(rng.choice(words)) for text in texts]
    tree = SoftmaxTreeClassifier(depth=1, max_sweeps=2, random_state=0)
    return TextClassifier(tree, features="words", rejection=True).fit(texts, labels).freeze()


@functools.cache
def row_model(n_classes: int = 4) -> Any:
    """Return a model of six features whose labels are numbers."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % n_classes
    X = (np.eye(6)[y % 6] * 3 + rng.normal(size=(120, 6))).astype(np.float32)
    return SoftmaxTreeClassifier(depth=1, max_sweeps=3, random_state=0).fit(X, y * 10).freeze()


@functools.cache
def record_model() -> Any:
    """Return a model of two columns of texts and one of numbers."""
    rows = [{"title": text, "body": text.upper(), "age": i % 7} for i, text in enumerate(TEXTS)]
    tree = SoftmaxTreeClassifier(depth=1, max_sweeps=3, random_state=0)
    classifier = TextClassifier(
        tree, features="words", text_columns=["title", "body"], numeric_columns=["age"]
    )
    return classifier.fit(rows, LABELS).freeze()


@functools.cache
def encoder_model() -> Any:
    """Return a model of the counts of some letters."""
    tree = SoftmaxTreeClassifier(depth=1, max_sweeps=3, random_state=0)

    def encoder(texts: list[str]) -> Any:
        return np.array([[text.count(letter) for letter in "aegr"] for text in texts], np.float32)

    return TextClassifier(tree, features=encoder, rejection=False).fit(TEXTS, LABELS).freeze()


@functools.cache
def label_tree() -> Any:
    """Return a label tree of texts."""
    tree = LabelTreeClassifier(dim=8, arity=2, epochs=20, random_state=0)
    return tree.fit(TEXTS, LABELS).freeze()


SAMPLES: dict[str, tuple[Any, Any]] = {
    "texts": (text_model, "a broken toe"),
    "rows": (row_model, [0.5, 3, 0, -1.5, 0, 0]),
    "records": (record_model, {"title": "a broken toe", "body": "ouch", "age": 4}),
    "label tree": (label_tree, "a broken toe"),
}
"""By kind: what makes a model, and a sample for it."""


def saved(model: Any, folder: Path) -> Path:
    """Return the file of a model."""
    path = folder / "model.thinleaf"
    model.save(path)
    return path
