"""Make the test vectors of docs/format.md: small model files, and ``vectors.json``, their answers.

Run ``python -m tests.data.vectors.make`` to make them anew; a test says when they are out of date.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tests.frozen_cases import frozen_forest, labels_of, rich_forest, rich_model
from tests.narrow_cases import narrow_model, narrow_tree, wide_tree
from tests.text_cases import made_texts
from thinleaf import LabelTreeClassifier, SoftmaxTreeClassifier, load
from thinleaf.arrays.ragged import offsets
from thinleaf.model.file_parts import Section
from thinleaf.model.frozen import FrozenModel, FrozenTree
from thinleaf.model.narrow import features_between
from thinleaf.text.features import TextFeatures

HERE = Path(__file__).parent
EXPECTED = HERE / "vectors.json"
TEXTS = [
    "My card was stolen", "please help with the LOAN rate", "a flight, a hotel: a trip!", "",
    "app  update\ton my phone_number", "ΣΊΣΥΦΟΣ card ΑΣ", "İstanbul visa", "été naïve ÉTÉ 漢字 pay",
    "pin pin pin pin chip", "no_such word2 here", "ＡＢＣ ⅷ Ⅷ ǅ card",
    "straße STRASSE ẞ \U00010400 loan",
]  # fmt: skip


def text_model(features: TextFeatures, **frozen: Any) -> FrozenTree:
    """Return a tree that was trained on some texts."""
    texts, labels = made_texts(80)
    texts = [f"{text} été ΣΊΣΥΦΟΣ 漢字" if i % 3 else text for i, text in enumerate(texts)]
    X = features.fit(texts).transform(texts)
    clf = SoftmaxTreeClassifier(depth=2, leaf_classes=3, max_sweeps=2, random_state=0)
    model = clf.fit(X, np.array(labels)).freeze(**frozen)
    return model.with_sections(text=Section(*features.to_arrays()))


def label_tree(texts: bool, **options: Any) -> FrozenModel:
    """Return a label tree of texts or of rows."""
    clf = LabelTreeClassifier(dim=5, epochs=5, random_state=0, **options)
    if texts:
        return clf.fit(*made_texts(80)).freeze()
    rng = np.random.default_rng(0)
    y = np.arange(120) % 7
    X = (rng.normal(size=(7, 6))[y] + 0.3 * rng.normal(size=(120, 6))).astype(np.float32)
    return clf.fit(X, y).freeze()


def models() -> dict[str, FrozenModel]:
    """Return models of every kind that a reader meets."""
    rich = {
        "dense": rich_model(3, labels=labels_of("str")),
        "dense-float16": rich_model(4, weights="float16", labels=labels_of("float")),
        "dense-int8": rich_model(5, weights="int8", labels=labels_of("int")),
        "sparse": rich_model(3, sparse=True, labels=labels_of("object")),
        "sparse-float16": rich_model(4, sparse=True, weights="float16"),
        "sparse-int8": rich_model(5, sparse=True, weights="int8"),
        "beam": rich_model(6, beam=4),
        "beam-temperature": rich_model(6, sparse=True).with_beam(3, temperature=2.5),
        "forest": rich_forest((3, 4, 5)),
        "forest-beam": rich_forest((3, 4), sparse=True).with_beam(2, temperature=0.5),
    }
    narrow_trees = frozen_forest([wide_tree(seed, width=300) for seed in (3, 4)], sparse=True)
    narrow = {
        "narrow": narrow_tree(7),
        "narrow-float16": narrow_model(narrow_trees, "float16").with_beam(3, temperature=1.5),
        "narrow-int8": narrow_tree(8, weights="int8"),
        "narrow-segments": narrow_tree(9, width=65_600),
    }
    texts = {
        "text-words": text_model(TextFeatures(min_df=1)),
        "text-chars": text_model(TextFeatures("chars", char_range=(3, 5), min_df=2)),
        "text-both": text_model(TextFeatures("both", min_df=2, ngram_range=(1, 3)), beam=3),
        "text-hashing": text_model(TextFeatures("hashing", n_buckets=256)),
        "text-unsigned": text_model(TextFeatures("hashing", n_buckets=64, signed=False)),
        "text-narrow": narrow_model(text_model(TextFeatures("both", min_df=1)), "int8"),
    }
    trees = {
        "label-tree": label_tree(False, arity=3),
        "label-tree-binary": label_tree(False, arity=2, search="greedy"),
        "label-tree-text": label_tree(True, arity=2, ngrams=2),
    }
    return rich | narrow | texts | trees


def rows_for(n_features: int) -> np.ndarray:
    """Return eight rows, the last of zeros."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(8, n_features)).astype(np.float32)
    X[rng.random(X.shape) < 0.5] = 0.0
    X[-1] = 0.0
    return X


def pairs_for(model: FrozenTree) -> list[Any]:
    """Return index and value pairs of eight rows, mostly of features that the model uses."""
    rng = np.random.default_rng(12)
    used = features_between(model.packed, 0, model.n_leaves)
    rows = [
        np.union1d(rng.choice(used, 30), rng.integers(model.n_features, size=5)) for _ in range(8)
    ]
    return [[idx.tolist(), rng.normal(size=idx.size).astype("f4").tolist()] for idx in rows]


def matrix_of(pairs: list[Any], n_features: int) -> sp.csr_array:
    """Return rows of index and value pairs."""
    idx, val = (np.concatenate([pair[i] for pair in pairs]) for i in (0, 1))
    ptr = offsets([len(pair[0]) for pair in pairs])
    return sp.csr_array((val.astype("f4"), idx.astype("i4"), ptr), shape=(len(pairs), n_features))


def said(model: Any) -> dict[str, Any]:
    """Return inputs and what a model answers, as JSON values."""
    texts = model.takes_texts
    inputs: dict[str, Any] = {}
    X: Any = TEXTS
    if texts:
        inputs["texts"] = TEXTS
    elif model.n_features > 1000:  # dense rows would be long
        inputs["pairs"] = pairs_for(model)
        X = matrix_of(inputs["pairs"], model.n_features)
    else:
        X = rows_for(model.n_features)
        sparse = [sp.csr_array(x[None]) for x in X]
        inputs["rows"] = X.tolist()
        inputs["pairs"] = [[row.indices.tolist(), row.data.tolist()] for row in sparse]
    if texts and hasattr(model, "input"):
        rows = [model.input.one(text) for text in X]
        inputs["text_rows"] = [[idx.tolist(), val.tolist()] for idx, val in rows]
    k = min(3, model.n_classes)
    labels, p = model.predict_topk(X, k)
    one_by_one = [[x] for x in X] if isinstance(X, list | np.ndarray) else inputs["pairs"]
    out = {
        **inputs,
        "predict": [model.predict_one(*x) for x in one_by_one],
        "topk": labels.tolist(),
        "topk_proba": p.tolist(),
    }
    if hasattr(model, "apply"):
        out["leaf_nodes"] = model.apply(X).reshape(len(labels), -1).tolist()
    return out


def main() -> None:
    """Write all of them."""
    expected = {}
    for name, model in models().items():
        path = HERE / f"{name}.thinleaf"
        model.save(path)
        expected[name] = said(load(path))
    EXPECTED.write_text(json.dumps(expected, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
