"""A growing tree on disk, so that a fit that was killed can go on as if it had not been."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thinleaf._dtypes import INDEX, AnyArray
from thinleaf.arrays.files import ModelFileError, read_arrays, write_arrays
from thinleaf.arrays.rows import CSR, n_features_of
from thinleaf.model.file_parts import tree_arrays, tree_from_arrays
from thinleaf.softmaxtree.growth.expand import Grown
from thinleaf.softmaxtree.growth.round_record import RoundRecord
from thinleaf.softmaxtree.tao import SweepRecord, TrainingData

_FORMAT = "thinleaf checkpoint 1"


@dataclass(frozen=True)
class Checkpoint:
    """Where a fit is kept between rounds.

    Attributes
    ----------
    path : Path
    fit : str
        Fingerprint of the data and of the parameters that shape the tree; see :func:`fingerprint`.
    """

    path: Path
    fit: str

    def save(self, grown: Grown, entropy: int) -> None:
        """Write the state after a round, and the entropy that all its seeds come from."""
        arrays = tree_arrays(grown.tree, "tree.") | {"leaf_limits": grown.leaf_limits}
        own_best = grown.best is not None and grown.best is not grown.tree
        if own_best and grown.best is not None:
            arrays |= tree_arrays(grown.best, "best.")
        arrays |= _pack("solved", grown.solved) | _pack("refused", grown.refused)
        metadata = {
            "format": _FORMAT,
            "fit": self.fit,
            "entropy": entropy,
            "n_features": grown.tree.n_features,
            "n_classes": grown.tree.n_classes,
            "own_best": own_best,
            "history": [asdict(record) for record in grown.history],
        }
        write_arrays(self.path, arrays, metadata)

    def load(self) -> tuple[Grown, int] | None:
        """Return the saved state and entropy, or None if there is no file yet."""
        if not self.path.exists():
            return None
        try:
            arrays, metadata = read_arrays(self.path)
            if metadata.get("format") != _FORMAT:
                raise ModelFileError(f"{self.path} is not a {_FORMAT!r} file")
            fit, entropy = str(metadata["fit"]), int(metadata["entropy"])
            size = {name: int(metadata[name]) for name in ("n_features", "n_classes")}
            tree = tree_from_arrays(arrays, "tree.", **size)
            best = tree_from_arrays(arrays, "best.", **size) if metadata["own_best"] else tree
            history = tuple(_record(entry) for entry in metadata["history"])
            if not history or arrays["leaf_limits"].shape != (tree.n_nodes,):
                raise ModelFileError(f"{self.path} is not complete")
            grown = Grown(
                tree,
                arrays["leaf_limits"].astype(INDEX),
                _unpack("solved", arrays),
                _unpack("refused", arrays),
                history,
                best,
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ModelFileError(
                f"the checkpoint cannot be read: {error}; delete {self.path} to start afresh"
            ) from error
        if fit != self.fit:
            raise ValueError(
                f"the checkpoint {self.path} is of a fit with other data or parameters: "
                "give another path, or delete it to start afresh"
            )
        return grown, entropy


def fingerprint(data: TrainingData, parameters: Mapping[str, Any]) -> str:
    """Return a digest of all that the tree of a fit depends on, but for its seed."""
    digest = hashlib.blake2b(digest_size=16)
    X = (data.X.indptr, data.X.indices, data.X.data) if isinstance(data.X, CSR) else (data.X,)
    digest.update(str(n_features_of(data.X)).encode())
    for array in (*X, data.y, data.weight):
        digest.update(str((array.shape, array.dtype)).encode())
        digest.update(np.ascontiguousarray(array).data)
    digest.update(json.dumps(parameters, sort_keys=True, default=repr).encode())
    return digest.hexdigest()


def _pack(name: str, prints: Mapping[int, bytes]) -> dict[str, AnyArray]:
    nodes = sorted(prints)
    joined = b"".join(prints[node] for node in nodes)
    return {
        f"{name}.nodes": np.array(nodes, dtype=INDEX),
        f"{name}.prints": np.frombuffer(joined, dtype=np.uint8).reshape(len(nodes), -1)
        if nodes
        else np.empty((0, 0), dtype=np.uint8),
    }


def _unpack(name: str, arrays: Mapping[str, AnyArray]) -> dict[int, bytes]:
    nodes, prints = arrays[f"{name}.nodes"], arrays[f"{name}.prints"]
    return {int(node): row.tobytes() for node, row in zip(nodes, prints, strict=True)}


def _record(entry: Mapping[str, Any]) -> RoundRecord:
    sweeps = [SweepRecord(**sweep) for sweep in entry["sweeps"]]
    return RoundRecord(**(dict(entry) | {"sweeps": sweeps}))
