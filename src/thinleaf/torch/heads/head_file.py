"""Files of heads: routers and sets of classes. The layer's own weights stay where they are.

A file names the layer that it belongs to by a fingerprint of its weights, and is checked before
anything is made of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from thinleaf._dtypes import INDEX, OFFSET, PARAM, AnyArray
from thinleaf.arrays.checks import require
from thinleaf.arrays.files import ModelFileError, read_arrays, typed, write_arrays
from thinleaf.torch.heads.leaf_sets import LeafSets
from thinleaf.torch.heads.routers import Routers
from thinleaf.torch.heads.rows import RowKind, as_array

if TYPE_CHECKING:
    from thinleaf.torch.heads.tree_head import TreeHead

FORMAT = "thinleaf head"
VERSION = 1


def fingerprint(weight: Tensor) -> str:
    """Return a digest of a layer's weights."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{tuple(weight.shape)} {weight.dtype}".encode())
    for block in torch.split(weight.detach().cpu(), 8192):
        digest.update(as_array(block).tobytes())
    return digest.hexdigest()


def write(head: TreeHead, path: Path) -> None:
    """Write a head."""
    routers, sets = head.routers, head.sets
    arrays: dict[str, AnyArray] = {
        "routers.weights": routers.weights,
        "routers.bias": routers.bias,
        "sets.common": sets.common,
        "sets.ptr": sets.ptr,
        "sets.classes": sets.classes,
        "sets.frequent": sets.frequent,
    }
    known = head.trained_on
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "layer": fingerprint(head.weight),
        "in_features": head.in_features,
        "n_classes": head.out_features,
        "rows": head.row_kind,
        "n_paths": head.n_paths,
        "exact": head.exact,
        "trained_on": None if known is None else asdict(known),
    }
    write_arrays(path, arrays, metadata)


def read(kind: type[TreeHead], path: Path, layer: nn.Linear, rows: RowKind | None) -> TreeHead:
    """Read a head for its layer; ``ModelFileError`` if the file is not what it should be."""
    if not isinstance(layer, nn.Linear | kind):
        raise TypeError(f"layer must be nn.Linear, is {type(layer).__name__}")
    arrays, metadata = read_arrays(path, mapped=False)
    try:
        require(metadata.get("format") == FORMAT, "it holds no head")
        require(metadata.get("version") == VERSION, "it is of another version of thinleaf")
        routers, sets = _checked(arrays, metadata)
        known = _known(metadata["trained_on"], sets.n_leaves)
        n_paths, exact = typed(metadata, "n_paths", int), typed(metadata, "exact", bool)
        name, shape = typed(metadata, "layer", str), _shape(metadata)
        stored_rows = typed(metadata, "rows", str)
        require(stored_rows in ("float32", "float16", "bfloat16", "int8"), "rows are unknown")
        require(n_paths in (1, 2), "n_paths is 1 or 2")
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is not a file of a head, or is damaged: {error}") from error
    if (layer.out_features, layer.in_features) != shape or fingerprint(layer.weight) != name:
        raise ValueError(
            f"{path} belongs to another layer, of {shape[0]} classes and {shape[1]} features, or "
            "the weights have changed since: make the head again with replace_head"
        )
    return kind(
        layer.weight,
        layer.bias,
        routers,
        sets,
        rows=rows or stored_rows,
        n_paths=n_paths,
        exact=exact,
        trained_on=known,
    )


def _shape(metadata: dict[str, Any]) -> tuple[int, int]:
    return typed(metadata, "n_classes", int), typed(metadata, "in_features", int)


def _checked(arrays: dict[str, AnyArray], metadata: dict[str, Any]) -> tuple[Routers, LeafSets]:
    weights, bias = arrays["routers.weights"], arrays["routers.bias"]
    names = ("common", "ptr", "classes", "frequent")
    common, ptr, classes, frequent = (arrays[f"sets.{name}"] for name in names)
    n_classes, dim = _shape(metadata)
    require(weights.dtype == bias.dtype == PARAM, "routers are of another type")
    require(weights.shape == (bias.size, dim) and bias.ndim == 1, "routers have a wrong shape")
    n_leaves = bias.size + 1
    require(n_leaves & (n_leaves - 1) == 0, "the tree is not complete")
    require(bool(np.isfinite(weights).all() and np.isfinite(bias).all()), "routers are not finite")
    require(
        common.dtype == classes.dtype == frequent.dtype == INDEX and ptr.dtype == OFFSET,
        "sets are of another type",
    )
    require(common.ndim == classes.ndim == frequent.ndim == 1, "sets have a wrong shape")
    require(ptr.shape == (n_leaves + 1,), "there must be a set for each leaf")
    rises = ptr[0] == 0 and ptr[-1] == classes.size and bool(np.all(np.diff(ptr) >= 0))
    require(bool(rises), "offsets of sets must rise from 0")
    sets = LeafSets(common.copy(), ptr.copy(), classes.copy(), frequent.copy())
    for own in (common, np.sort(frequent), *map(sets.own, range(n_leaves))):
        require(bool(np.all(np.diff(own) > 0)), "the classes of a set must rise")
        inside = own.size == 0 or (own[0] >= 0 and own[-1] < n_classes)
        require(bool(inside), "a set has a class that there is not")
    require(bool(np.all(sets.sizes > 0)), "a leaf keeps no class")
    return Routers(weights.copy(), bias.copy()), sets


def _known(stored: Any, n_leaves: int) -> Any:
    from thinleaf.torch.heads.tree_head import TrainedOn

    if stored is None:
        return None
    require(isinstance(stored, dict), "trained_on is no object")
    known = TrainedOn(
        typed(stored, "n_states", int),
        typed(stored, "agreement", float),
        [float(share) for share in typed(stored, "leaf_share", list)],
        [float(share) for share in typed(stored, "outside", list)],
        typed(stored, "settings", dict),
    )
    fits = len(known.leaf_share) == len(known.outside) == n_leaves
    require(fits, "trained_on must have a number for each leaf")
    return known
