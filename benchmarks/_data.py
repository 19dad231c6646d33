"""Data sets of a directory given by the user, in the form that all figures are measured on.

Dense sets are ``<name>/<name>.npz`` (X_train, y_train, X_test, y_test), standardised by the
training part; text sets are ``<name>/train.tsv.gz`` and ``test.tsv.gz`` (label, tab, text), turned
into tf-idf of word 1- and 2-grams.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

MAX_FEATURES = {"bible_verse": 100_000}


@dataclass(frozen=True)
class Dataset:
    """A train and a test part with labels as they stand in the file."""

    name: str
    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray

    @property
    def n_classes(self) -> int:
        """Number of classes in the training part."""
        return np.unique(self.y_train).size


def available(directory: Path, name: str) -> bool:
    """Whether the data directory holds the set."""
    return (directory / name).is_dir()


def load(directory: Path, name: str) -> Dataset:
    """Read a set and compute its features."""
    folder = directory / name
    if (folder / f"{name}.npz").exists():
        with np.load(folder / f"{name}.npz") as arrays:
            parts = {key: arrays[key] for key in arrays.files}
        mean = parts["X_train"].mean(axis=0)
        deviation = parts["X_train"].std(axis=0)
        deviation[deviation == 0] = 1.0
        return Dataset(
            name,
            ((parts["X_train"] - mean) / deviation).astype(np.float32),
            parts["y_train"],
            ((parts["X_test"] - mean) / deviation).astype(np.float32),
            parts["y_test"],
        )
    y_train, texts_train = _read_tsv(folder / "train.tsv.gz")
    y_test, texts_test = _read_tsv(folder / "test.tsv.gz")
    vectorizer = TfidfVectorizer(
        lowercase=True,
        token_pattern=r"\b\w+\b",
        ngram_range=(1, 2),
        min_df=2,
        sublinear_tf=True,
        max_features=MAX_FEATURES.get(name, 200_000),
        dtype=np.float32,
    )
    X_train = vectorizer.fit_transform(texts_train)
    return Dataset(name, X_train, y_train, vectorizer.transform(texts_test), y_test)


def _read_tsv(path: Path) -> tuple[np.ndarray, list[str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        pairs = [line.rstrip("\n").split("\t", 1) for line in lines]
    return np.array([label for label, _ in pairs]), [text for _, text in pairs]
