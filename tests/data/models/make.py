"""Make the model files of this directory, and ``expected.json`` with what they say.

They are of format version 1, the forest of version 2, the one with a temperature of version 3, the
narrow one of version 4, and one of columns has sections of texts, rejection and input (version 2 of
that). They stay as they are: later versions must read them, too. Run this only to add files,
``python -m tests.data.models.make``; one that exists is not made again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from tests.estimator_cases import problem, quick
from tests.frozen_cases import backoff_of, frozen, frozen_forest, labels_of
from tests.strategies import random_tree, rich_tree
from tests.text_cases import made_texts
from thinleaf import FrozenTextTree, FrozenTree, SoftmaxTreeClassifier, TextClassifier, load
from thinleaf.datasets import Layout
from thinleaf.model.file_parts import Section
from thinleaf.model.narrow import narrowed
from thinleaf.model.quantization import quantize
from thinleaf.softmaxtree.growth.prune import prune
from thinleaf.text.features import TextFeatures
from thinleaf.text.recipe import Recipe

HERE = Path(__file__).parent
EXPECTED = HERE / "expected.json"


def rows_for(model: FrozenTree) -> np.ndarray:
    """Return the rows that recorded answers are for."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(12, model.n_features)).astype(np.float32)
    X[rng.random(X.shape) < 0.5] = 0.0
    return X


def said(model: FrozenTree) -> dict[str, Any]:
    """Return what a model says of the rows, dense and sparse alike, as JSON values."""
    X = rows_for(model)
    P, held = model.predict_proba(X), model.predict_proba_sparse(sp.csr_array(X))
    labels, top = model.predict_topk(X, 2)
    return {
        "labels": model.labels.tolist(),
        "predict": model.predict(sp.csr_array(X)).tolist(),
        "apply": model.apply(X).tolist(),
        "topk": labels.tolist(),
        "topk_proba": [[p.hex() for p in row] for row in top.tolist()],
        "proba": [[p.hex() for p in row] for row in P.tolist()],
        "held": [held.indptr.tolist(), held.indices.tolist()],
        "held_proba": [[p.hex() for p in held.data.tolist()]],
    }


def table_for(model: FrozenTree) -> dict[str, list[Any]]:
    """Return the samples that a model of columns is asked for."""
    made = model.input  # type: ignore[attr-defined]
    texts = ["please block my lost card", "the flight abroad", "zz qq", "", "Ünïcode loan — RATE"]
    columns: dict[str, list[Any]] = {
        name: texts[i:] + texts[:i] for i, name in enumerate(made.texts)
    }
    return columns | {name: [1.5, -2.0, 0.0, 1e6, 40.0] for name in made.numeric}


def said_of_texts(model: FrozenTree) -> dict[str, Any]:
    """Return what a model of columns says of samples."""
    table, own = table_for(model), cast("FrozenTextTree", model)
    return {
        "texts": own.predict(table).tolist(),
        "rejected": own.rejects(table, 0.5).tolist(),
        "input": own.sections["input"].metadata,
    }


def columns_model() -> FrozenTextTree:
    """Return a model of two columns of texts and one of numbers, with all sections it may have."""
    texts, labels = made_texts(300)
    X = {"title": texts, "body": texts[::-1], "price": list(range(300))}
    clf = TextClassifier(
        SoftmaxTreeClassifier(depth=2, leaf_classes=3, max_sweeps=2),
        TextFeatures("both", max_features=30),
        text_columns=["title", "body"],
        numeric_columns=["price"],
        random_state=0,
    ).fit(X, labels)
    layout = Layout("csv", text_column=("title", "body"), label_column="topic")
    model: FrozenTextTree = clf.freeze().with_sections(**Recipe(0, layout).sections())
    return model


def models() -> dict[str, FrozenTree]:
    """Return models of every layout, type of weights and kind of labels."""
    trees = [rich_tree(np.random.default_rng(seed), 8, 16) for seed in range(4)]
    backoffs = [backoff_of(tree) for tree in trees]
    text = TextFeatures(min_df=1).fit(["a broken arm", "a broken leg"])
    two, _ = prune(random_tree(np.random.default_rng(2), 4, 5, 2, pure=0.0))
    names = [f"feature {i} é" for i in range(16)]
    return {
        "dense-float32-str": frozen(
            trees[0], backoff=backoffs[0], labels=labels_of("str"), feature_names=names
        ),
        "dense-int8-int": frozen(
            trees[1], backoff=backoffs[1], weights="int8", labels=labels_of("int"), beam=3,
            summary={"a": [1, 2.5, None, {"b": "ü"}]},
        ),
        "sparse-float32-object": frozen(
            trees[2], sparse=True, epsilon=0.01, labels=labels_of("object"), beam=2,
            sections={"text": Section(*text.to_arrays())},
        ),
        "sparse-int8-float": frozen(
            trees[3], sparse=True, backoff=backoffs[3], weights="int8", labels=labels_of("float")
        ),
        "dense-float16-bool": frozen(two, weights="float16", labels=labels_of("bool")),
        "forest": frozen_forest(trees[:3], backoffs[:3], sparse=True, weights="int8"),
        "narrow": narrow(frozen(trees[2], sparse=True, backoff=backoffs[2], beam=2)),
        "temperature": frozen(trees[1], backoff=backoffs[1]).with_beam(3, temperature=2.5),
        "columns": columns_model(),
    }  # fmt: skip


def narrow(model: FrozenTree) -> FrozenTree:
    """Return a model as a larger one would be packed, its routers with weights of float16."""
    return model.replaced(packed=quantize(narrowed(model.packed), "int8"))


def main() -> None:
    """Write what is missing."""
    expected = json.loads(EXPECTED.read_text("utf-8")) if EXPECTED.exists() else {}
    made = {name: model.save for name, model in models().items()}
    X, y = problem(0, n_rows=60, n_features=4, n_classes=5)
    clf = quick(leaf_classes=2).fit(X, y)
    made["estimator"] = lambda path: clf.save(path, trainable=True)
    few = X * (np.random.default_rng(0).random(X.shape) < 0.4)
    words = sp.csr_array(np.hstack([few, np.eye(60, dtype=np.float32)]))
    sparse = quick(leaf_classes=5, depth=1, leaf_l1=0.2).fit(words, y)
    assert sparse.tree_.entry_val.size
    made["estimator-sparse"] = lambda path: sparse.save(path, trainable=True)
    for name, save in made.items():
        path = HERE / f"{name}.safetensors"
        if not path.exists():
            save(path)
            expected[name] = said(load(path))
            if name == "columns":
                expected[name] |= said_of_texts(load(path))
    EXPECTED.write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
