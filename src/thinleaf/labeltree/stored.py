"""Label trees as arrays of a model file, and back: nothing is built before it has been checked.

Kernels do not look where they write. So whatever they index with is compared with the size of what
it indexes: children, words, shapes of parameters. What else a file holds is for the estimators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, OFFSET, PARAM, AnyArray
from thinleaf.arrays.checks import require
from thinleaf.labeltree.bilinear import LogBilinear
from thinleaf.labeltree.label_tree import LabelTree
from thinleaf.labeltree.model import ABSENT, LabelTreeNodes, n_outputs
from thinleaf.labeltree.statistics import NodeQuality
from thinleaf.labeltree.word_features import WordFeatures

_MEAN_DEPTH = 1000
"""Paths of labels may not be longer on average: a small file could else ask for any memory."""
VERSION = 1
"""Of the format."""
_NODES = {"children": INDEX, "weights": PARAM, "bias": PARAM}
_QUALITY = {name: INDEX if name == "n_labels" else ACCUM for name in NodeQuality._fields}
_WORDS = ("ngrams", "n_buckets", "min_count", "pooling")
_MAX_NGRAMS = 10


NODE_ARRAYS = {f"nodes.{name}" for name in _NODES} | {f"nodes.quality.{name}" for name in _QUALITY}
"""The names of what :func:`node_arrays` returns."""


def node_arrays(nodes: LabelTreeNodes, quality: NodeQuality) -> dict[str, AnyArray]:
    """Return the tree, the parameters of its nodes, and how good its splits are."""
    arrays = {"children": nodes.tree.children, "weights": nodes.weights, "bias": nodes.bias}
    figures = {f"quality.{name}": array for name, array in quality._asdict().items()}
    return {f"nodes.{name}": array for name, array in (arrays | figures).items()}


def nodes_of(
    arrays: Mapping[str, AnyArray], n_labels: int, dim: int
) -> tuple[LabelTreeNodes, NodeQuality]:
    """Return what :func:`node_arrays` was called on; ``ValueError`` if that cannot be.

    Parameters
    ----------
    arrays : mapping
    n_labels : int
    dim : int
        Length of the representations.
    """
    children, weights, bias = (taken(arrays, f"nodes.{k}", t) for k, t in _NODES.items())
    tree = LabelTree.build(children, n_labels, max_entries=_MEAN_DEPTH * n_labels)
    shape = (tree.n_nodes, n_outputs(tree))
    require(bias.shape == shape, f"bias must have shape {shape}")
    require(weights.shape == (*shape, dim), f"weights must be {dim} for each bias")
    absent = np.zeros(shape, dtype=bool) if tree.arity == 2 else ~tree.present
    require(bool(np.all(bias[absent] == ABSENT)), "a branch that leads nowhere has a probability")
    quality = {k: taken(arrays, f"nodes.quality.{k}", t, finite=False) for k, t in _QUALITY.items()}
    for name, array in quality.items():
        require(array.shape == (tree.n_nodes,), f"{name} must be one for each node")
    return LabelTreeNodes(tree, weights, bias), NodeQuality(**quality)


def word_arrays(features: WordFeatures) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Return the terms of training texts, and how texts are read."""
    arrays = {"words.keys": features.term_keys.view(np.int64)}
    return arrays, {name: getattr(features, name) for name in _WORDS}


def words_of(arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any]) -> WordFeatures:
    """Return what :func:`word_arrays` was called on; ``ValueError`` if that cannot be."""
    require(set(metadata) == set(_WORDS), f"words must have {', '.join(_WORDS)}")
    ngrams, n_buckets, min_count = (metadata[name] for name in _WORDS[:3])
    require(type(ngrams) is int and 1 <= ngrams <= _MAX_NGRAMS, "ngrams is out of range")
    require(type(n_buckets) is int and 1 <= n_buckets < 2**62, "n_buckets is out of range")
    require(type(min_count) is int and min_count >= 1, "min_count is out of range")
    require(metadata["pooling"] in ("mean", "sum"), "unknown pooling")
    keys = taken(arrays, "words.keys", OFFSET).view(np.uint64)
    require(keys.ndim == 1 and keys.size < 2**30, "there are too many terms")
    require(bool(np.all(keys[1:] > keys[:-1])), "terms must ascend")
    require(keys.size == 0 or keys[0] > 0, "a term is empty")
    of_ngrams = keys[keys % np.uint64(2) == 1]
    require(bool(np.all(of_ngrams < np.uint64(2 * n_buckets))), "a term lies beyond the buckets")
    return WordFeatures(ngrams, n_buckets, min_count, metadata["pooling"]).with_terms(keys)


def context_arrays(core: LogBilinear) -> dict[str, AnyArray]:
    """Return U and R_k of a language model."""
    return {"context.U": core.U, "context.R": core.R}


def context_of(
    arrays: Mapping[str, AnyArray], n_words: int, n_context: int, dim: int
) -> LogBilinear:
    """Return what :func:`context_arrays` was called on; ``ValueError`` if that cannot be."""
    U, R = taken(arrays, "context.U", PARAM), taken(arrays, "context.R", PARAM)
    require(U.shape == (n_words + 1, dim), f"U must have shape {(n_words + 1, dim)}")
    require(R.shape == (n_context, dim, dim), f"R must have shape {(n_context, dim, dim)}")
    return LogBilinear(U, R)


def taken(
    arrays: Mapping[str, AnyArray], name: str, dtype: type, *, finite: bool = True
) -> AnyArray:
    """Return a copy of an array of a file, of the type that it must have."""
    if name not in arrays:
        raise ValueError(f"array {name!r} is missing")
    array = arrays[name]
    require(array.dtype == dtype, f"{name} must be {np.dtype(dtype)}, is {array.dtype}")
    if finite and array.dtype.kind == "f":
        require(bool(np.isfinite(array).all()), f"{name} has NaN or infinity")
    return array.copy()
