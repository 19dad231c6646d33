"""Data sets of a directory given by the user, in the form that all figures are measured on.

Dense sets are ``<name>/<name>.npz`` (X_train, y_train, X_test, y_test), standardised by the
training part; sentence embeddings, which ``benchmarks.embed`` makes, are left as they are, rows of
unit length. Text sets are ``<name>/train.tsv.gz`` and ``test.tsv.gz`` (label, tab, text), turned
into tf-idf of word 1- and 2-grams. Language sets are ``<name>/<stem>.<part>.txt.gz``, one sentence
or paragraph a line; a row is three words, its label the word that follows.
"""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from thinleaf.measuring import Split

DENSE_SETS = ("letter", "fontglyph1000", "omniglot", "geo_admin1")
TEXT_SETS = (
    "banking77",
    "clinc150",
    "uksoc_titles",
    "udhr_lid",
    "naics2017",
    "icd10cm",
    "wordnet_hypernym",
    "debian_paths",
    "bible_verse",
)
MINILM = "_minilm"
"""What the name of a text set ends with where its rows are sentence embeddings."""

EMBEDDED_SETS = tuple(
    f"{name}{MINILM}" for name in ("banking77", "clinc150", "naics2017", "uksoc_titles", "icd10cm")
)
LANGUAGE_SETS = ("ptb", "novels100")

MAX_FEATURES = {"bible_verse": 100_000}
PTB_VECTORS = "glove100_ptb"
N_CONTEXT = 3


@dataclass(frozen=True)
class Dataset:
    """A train and a test part with labels as they stand in the file, and what is for validation.

    Test rows of classes that the training part lacks are kept: they count as errors.
    """

    name: str
    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray
    X_valid: Any = None
    y_valid: np.ndarray | None = None
    texts_train: list[str] | None = None
    texts_test: list[str] | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes in the training part."""
        return np.unique(self.y_train).size


def as_split(data: Dataset) -> Split:
    """Return a set as the library's comparison takes it."""
    parts = (data.X_train, data.y_train, data.X_test, data.y_test)
    return Split.of(*parts, data.texts_train, data.texts_test)


def held_out(data: Dataset, share: float) -> Dataset:
    """Return a set whose test part is a share of the training rows, drawn at random; no texts."""
    order = np.random.default_rng(0).permutation(data.y_train.size)
    test, train = np.split(order, [int(share * order.size)])
    X, y = data.X_train, data.y_train
    return Dataset(data.name, X[train], y[train], X[test], y[test])


def available(directory: Path, name: str) -> bool:
    """Whether the data directory holds the set."""
    needed = [name, PTB_VECTORS] if name == "ptb" else [name]
    return all((directory / folder).is_dir() for folder in needed)


def load(directory: Path, name: str) -> Dataset:
    """Read a set and compute its features."""
    if name == "ptb":
        return _load_ptb(directory)
    if name == "novels100":
        return _load_novels(directory / name)
    if (directory / name / f"{name}.npz").exists():
        return _load_dense(directory / name, name)
    return _load_text(directory / name, name)


def _load_dense(folder: Path, name: str) -> Dataset:
    with np.load(folder / f"{name}.npz") as arrays:
        parts = {key: arrays[key] for key in arrays.files}
    X_train, X_test = parts["X_train"], parts["X_test"]
    if not name.endswith(MINILM):
        X_train, X_test = _standardised(X_train, X_test)
    data = Dataset(name, X_train, parts["y_train"], X_test, parts["y_test"])
    if name != "letter":
        return data
    texts = {f"texts_{part}": _as_words(parts[f"X_{part}"]) for part in ("train", "test")}
    return replace(data, **texts)


def _as_words(X: np.ndarray) -> list[str]:
    """Return rows of small integers as texts, for systems that read nothing else."""
    return [" ".join(f"{f}={int(x)}" for f, x in enumerate(row)) for row in X]


def _load_text(folder: Path, name: str) -> Dataset:
    y_train, texts_train = read_tsv(folder / "train.tsv.gz")
    y_test, texts_test = read_tsv(folder / "test.tsv.gz")
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
    X_test = vectorizer.transform(texts_test)
    texts = {"texts_train": texts_train, "texts_test": texts_test}
    return Dataset(name, X_train, y_train, X_test, y_test, **texts)


def _load_ptb(directory: Path) -> Dataset:
    """Next word in Penn Treebank from the word vectors of the three before it.

    Papers 000 and 001 count 400,097 train rows, 34,633 test rows and 5,970 classes, and say that
    words that appear fewer than 10 times are left out. Of many readings tried, the one that comes
    closest to these counts is taken, with 400,625, 34,632 and 5,978: words of letters only that
    occur more than 10 times in the training part, without the marks ``<unk>`` and ``N``; a row is
    four such words next to each other in a line. That only letters count is a guess, and with 10
    times and more the counts are 409,308, 35,280 and 6,393. The papers' vectors have 50 numbers,
    these have 100. The 30 words without a vector (``a`` and ``i`` are the frequent ones) are zeros
    before standardisation. The class of one test row is not a training label.
    """
    parts = _read_lines(directory / "ptb", "ptb")
    counts = Counter(word for line in parts["train"] for word in line)
    words = sorted(
        word for word, count in counts.items() if count > 10 and word.isalpha() and word != "N"
    )
    with np.load(directory / PTB_VECTORS / f"{PTB_VECTORS}.npz") as arrays:
        vector_of = dict(zip(arrays["words"].tolist(), arrays["X"], strict=True))
    zeros = np.zeros_like(next(iter(vector_of.values())))
    vectors = np.array([vector_of.get(word, zeros) for word in words])
    windows = [_windows(parts[part], words) for part in ("train", "test", "valid")]
    X_train, X_test, X_valid = _standardised(
        *(vectors[ids[:, :-1]].reshape(len(ids), -1) for ids in windows)
    )
    y_train, y_test, y_valid = (np.array(words)[ids[:, -1]] for ids in windows)
    return Dataset("ptb", X_train, y_train, X_test, y_test, X_valid, y_valid)


def _load_novels(folder: Path) -> Dataset:
    """Next word in a paragraph from the three before it, each one-hot in columns of its own.

    The words that occur at least 5 times in the training part, punctuation marks among them; rows
    as for Penn Treebank. There are too many rows for vectors: a row has three nonzeros.
    """
    parts = _read_lines(folder, "novels")
    counts = Counter(word for line in parts["train"] for word in line)
    words = sorted(word for word, count in counts.items() if count >= 5)
    windows = [_windows(parts[part], words) for part in ("train", "test", "valid")]
    X_train, X_test, X_valid = (_one_hot(ids[:, :-1], len(words)) for ids in windows)
    y_train, y_test, y_valid = (np.array(words)[ids[:, -1]] for ids in windows)
    return Dataset("novels100", X_train, y_train, X_test, y_test, X_valid, y_valid)


def _standardised(*parts: np.ndarray) -> list[np.ndarray]:
    """Return the parts with the mean and deviation of the first."""
    mean = parts[0].mean(axis=0)
    deviation = parts[0].std(axis=0)
    deviation[deviation == 0] = 1.0
    return [((X - mean) / deviation).astype(np.float32) for X in parts]


def next_words(
    directory: Path, n_context: int, n_tokens: int
) -> tuple[tuple[sp.csr_matrix, np.ndarray], tuple[sp.csr_matrix, np.ndarray]]:
    """Return rows and next words of the first tokens of novels100, in order, and of its test part.

    Words that occur at least 5 times in those first tokens, one-hot by place; labels are word ids.
    """
    parts = _read_lines(directory / "novels100", "novels", n_tokens)
    counts = Counter(word for line in parts["train"] for word in line)
    words = sorted(word for word, count in counts.items() if count >= 5)
    found = []
    for part in ("train", "test"):
        ids = _windows(parts[part], words, n_context)
        found.append((_one_hot(ids[:, :-1], len(words)), ids[:, -1]))
    return found[0], found[1]


def _windows(lines: list[list[str]], words: list[str], n_context: int = N_CONTEXT) -> np.ndarray:
    """Return the ids of all runs of a context and a next word in a line, all of them of words."""
    id_of = {word: i for i, word in enumerate(words)}
    ids = [id_of.get(word, -1) for line in lines for word in [*line, ""]]
    runs = np.lib.stride_tricks.sliding_window_view(np.array(ids, dtype=np.int32), n_context + 1)
    return runs[(runs >= 0).all(axis=1)]


def _one_hot(ids: np.ndarray, n_words: int) -> sp.csr_matrix:
    n_rows, n_context = ids.shape
    columns = (ids + n_words * np.arange(n_context, dtype=np.int32)).ravel()
    ones = np.ones(columns.size, dtype=np.float32)
    starts = np.arange(0, columns.size + 1, n_context, dtype=np.int32)
    return sp.csr_matrix((ones, columns, starts), shape=(n_rows, n_words * n_context))


def _read_lines(folder: Path, stem: str, n_tokens: int | None = None) -> dict[str, list[list[str]]]:
    """Return the words of each line, of all parts; of each, the first lines with so many words."""
    parts = {}
    for part in ("train", "test", "valid"):
        with gzip.open(folder / f"{stem}.{part}.txt.gz", "rt", encoding="utf-8") as lines:
            held: list[list[str]] = []
            n_held = 0
            for line in lines:
                if n_tokens is not None and n_held >= n_tokens:
                    break
                held.append(line.split())
                n_held += len(held[-1])
            parts[part] = held
    return parts


def read_tsv(path: Path) -> tuple[np.ndarray, list[str]]:
    """Return the labels and the texts of a file of lines of both."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        pairs = [line.rstrip("\n").split("\t", 1) for line in lines]
    return np.array([label for label, _ in pairs]), [text for _, text in pairs]
