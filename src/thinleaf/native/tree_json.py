"""Models as plain JSON, for those who write their own reader; docs/native.md describes the form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from thinleaf._dtypes import AnyArray
from thinleaf.labeltree.frozen import FrozenLabelTree
from thinleaf.model.file_parts import Section
from thinleaf.model.frozen import FrozenModel, FrozenTree

FORMAT = "thinleaf json"
VERSION = 1


def to_json(model: FrozenModel) -> str:
    """Return a model as JSON.

    Parameters
    ----------
    model : FrozenTree or FrozenLabelTree

    Raises
    ------
    ModelFileError
        If a leaf of the file that the model comes from is damaged.
    """
    about = {
        "format": FORMAT,
        "version": VERSION,
        "n_features": model.n_features,
        "labels": model.labels.tolist(),
        "feature_names": model.feature_names,
    }
    if isinstance(model, FrozenTree):
        form = about | _softmax_tree(model)
    elif isinstance(model, FrozenLabelTree):
        form = about | _label_tree(model)
    else:
        raise ValueError(f"there is no JSON form of {type(model).__name__}")
    return json.dumps(form, allow_nan=False)


def _softmax_tree(model: FrozenTree) -> dict[str, Any]:
    model.check()
    packed = model.packed
    return {
        "kind": "softmax tree",
        "beam": model.beam,
        "temperature": model.temperature,
        "roots": list(range(model.n_trees)),
        "nodes": [_node(model, node) for node in range(packed.n_nodes)],
        "prior": packed.prior.tolist(),
        "text": _text(model.sections),
    }


def _node(model: FrozenTree, node: int) -> dict[str, Any]:
    packed = model.packed
    child = int(packed.child[node])
    if child >= 0:
        router = packed.router(node)
        return {
            "left": child,
            "right": child + 1,
            "bias": router.bias,
            "features": router.features.tolist(),
            "weights": _short(router.weights),
        }
    i = -1 - child
    leaf, seen = packed.leaf(i), slice(*packed.extra_ptr[i : i + 2])
    return {
        "classes": leaf.classes.tolist(),
        "bias": _short(leaf.bias),
        "features": leaf.features.tolist(),
        "weights": [_short(row) for row in leaf.weights],
        "inside": float(packed.inside[i]),
        "outside": float(packed.outside[i]),
        "extra_classes": packed.extra_ids[seen].tolist(),
        "extra": packed.extra[seen].tolist(),
    }


def _label_tree(model: FrozenLabelTree) -> dict[str, Any]:
    nodes, words = model.model, model.words
    return {
        "kind": "label tree",
        "search": "greedy" if model.training.parameters.get("search") == "greedy" else "exact",
        "scale": float(nodes.scale),
        "children": nodes.tree.children.tolist(),
        "weights": [[_short(row) for row in own] for own in nodes.weights],
        "bias": [_short(row) for row in nodes.bias],
        "embeddings": [_short(row) for row in nodes.U],
        "words": None
        if words is None
        else {
            "ngrams": words.ngrams,
            "n_buckets": words.n_buckets,
            "pooling": words.pooling,
            "keys": [str(key) for key in words.term_keys.tolist()],
        },
    }


def _text(sections: Mapping[str, Section]) -> dict[str, Any] | None:
    """Return how texts become rows; None if that is not said, or not by terms."""
    if "text" not in sections:
        return None
    section = sections["text"]
    form: dict[str, Any] = dict(section.metadata)
    if "term_ptr" in section.arrays:
        content, ptr = section.arrays["term_bytes"].tobytes(), section.arrays["term_ptr"].tolist()
        form["terms"] = [content[a:b].decode() for a, b in pairwise(ptr)]
        form["idf"] = _short(section.arrays["idf"])
    return form


def _short(values: AnyArray) -> list[float]:
    """Return float32 numbers with the fewest digits that give them back."""
    return [float(str(value)) for value in np.asarray(values, dtype=np.float32)]
