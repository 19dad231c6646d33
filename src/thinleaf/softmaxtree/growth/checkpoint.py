"""A growing tree on disk, so that a fit that was killed can go on as if it had not been."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, AnyArray
from thinleaf.arrays.files import ModelFileError, read_arrays, write_arrays
from thinleaf.arrays.rows import CSR, n_features_of
from thinleaf.model.file_parts import tree_arrays, tree_from_arrays
from thinleaf.softmaxtree.growth.expand import Grown
from thinleaf.softmaxtree.growth.round_record import RoundRecord
from thinleaf.softmaxtree.tao import State, SweepRecord, Sweeps, TaoResult, TrainingData

_FORMAT = "thinleaf checkpoint 2"
_ROUNDS_ONLY = "thinleaf checkpoint 1"
"""What was written after rounds alone; it can be read."""


@dataclass(frozen=True)
class Checkpoint:
    """Where a fit is kept between sweeps.

    Attributes
    ----------
    path : Path
    fit : str
        Fingerprint of the data and of the parameters that shape the tree; see :func:`fingerprint`.
    """

    path: Path
    fit: str

    def save(self, grown: Grown, entropy: int) -> None:
        """Write the state after a sweep or a round, and the entropy that all seeds come from."""
        arrays = tree_arrays(grown.tree, "tree.") | {"leaf_limits": grown.leaf_limits}
        own_best = grown.best is not None and grown.best is not grown.tree
        if own_best and grown.best is not None:
            arrays |= tree_arrays(grown.best, "best.")
        solved = grown.solved if grown.sweeps is None else grown.sweeps.state.solved
        arrays |= _pack("solved", solved) | _pack("refused", grown.refused)
        metadata: dict[str, Any] = {
            "format": _FORMAT,
            "fit": self.fit,
            "entropy": entropy,
            "n_features": grown.tree.n_features,
            "n_classes": grown.tree.n_classes,
            "own_best": own_best,
            "history": [asdict(record) for record in grown.history],
            "sweeps": None,
        }
        if grown.sweeps is not None:
            arrays |= _sweep_arrays(grown.sweeps)
            metadata["sweeps"] = {
                "effort": grown.effort,
                "best_sweep": grown.sweeps.best.best_sweep,
                "history": [asdict(record) for record in grown.sweeps.best.history],
            }
        write_arrays(self.path, arrays, metadata)

    def load(self) -> tuple[Grown, int] | None:
        """Return the saved state and entropy, or None if there is no file yet."""
        if not self.path.exists():
            return None
        try:
            arrays, metadata = read_arrays(self.path)
            if metadata.get("format") not in (_FORMAT, _ROUNDS_ONLY):
                raise ModelFileError(f"{self.path} is not a {_FORMAT!r} file")
            fit, entropy = str(metadata["fit"]), int(metadata["entropy"])
            grown = _grown(arrays, metadata)
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


def _grown(arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any]) -> Grown:
    size = {name: int(metadata[name]) for name in ("n_features", "n_classes")}
    tree = tree_from_arrays(arrays, "tree.", **size)
    history = tuple(_record(entry) for entry in metadata["history"])
    best = tree_from_arrays(arrays, "best.", **size) if metadata["own_best"] else tree
    solved = _unpack("solved", arrays)
    under_way = metadata.get("sweeps")
    if arrays["leaf_limits"].shape != (tree.n_nodes,) or not (history or under_way):
        raise ModelFileError("it is not complete")
    grown = Grown(
        tree,
        arrays["leaf_limits"].astype(INDEX),
        solved,
        _unpack("refused", arrays),
        history,
        best if history else None,
    )
    if under_way is None:
        return grown
    records = [SweepRecord(**record) for record in under_way["history"]]
    best_sweep = int(under_way["best_sweep"])
    if not 0 <= best_sweep <= len(records) or not records:
        raise ModelFileError("it is not complete")
    loss, correct = arrays["state.loss"], arrays["state.correct"]
    if loss.ndim != 1 or loss.shape != correct.shape:
        raise ModelFileError("it is not complete")
    best_tree, best_solved = tree, dict(solved)
    if best_sweep < len(records):
        best_tree = tree_from_arrays(arrays, "best_sweep.", **size)
        best_solved = _unpack("best_sweep.solved", arrays)
    sweeps = Sweeps(
        tree,
        State(loss.astype(ACCUM), correct.astype(np.bool_), solved),
        TaoResult(best_tree, records, best_sweep, best_solved, "sweeps"),
        float(arrays["best_sweep.value"][0]),
    )
    accepted, tried, seconds = under_way["effort"]
    return replace(grown, sweeps=sweeps, effort=(int(accepted), int(tried), float(seconds)))


def _sweep_arrays(sweeps: Sweeps) -> dict[str, AnyArray]:
    """Return what is known of the rows, and the best iterate if it is not the last."""
    arrays = {
        "state.loss": sweeps.state.loss,
        "state.correct": sweeps.state.correct,
        "best_sweep.value": np.array([sweeps.best_value], dtype=ACCUM),
    }
    if sweeps.best.best_sweep < len(sweeps.best.history):
        arrays |= tree_arrays(sweeps.best.tree, "best_sweep.")
        arrays |= _pack("best_sweep.solved", sweeps.best.solved)
    return arrays


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
