"""A Recall Tree that only predicts, in a handful of buffers: quick to call for a single row.

To call a kernel costs a third of a microsecond for each array, and a state has thirty. Here all
arrays of one dtype stand in one buffer, and the kernel takes them apart again. The code that
descends and scores is that of :mod:`thinleaf.online.recall_tree`.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import types
from numba.extending import overload

from thinleaf._dtypes import (
    INDEX,
    OFFSET,
    AccumArray,
    AnyArray,
    IndexArray,
    OffsetArray,
    ParamArray,
)
from thinleaf.kernels._jit import bare_kernel, inlined
from thinleaf.kernels.rows import Rows, n_rows_of
from thinleaf.online.flow import LOGISTIC
from thinleaf.online.histogram import Histograms
from thinleaf.online.linear import MOST_MODELS, Learning, Models, Scratch, new_scratch
from thinleaf.online.recall_tree import RecallTree, Settings, best_candidate, score_row
from thinleaf.online.rows import Scales, longest
from thinleaf.online.tables import Tables, trimmed

FrozenScratch: TypeAlias = tuple[IndexArray, OffsetArray, ParamArray, AccumArray]


class FrozenRecallTree:
    """A Recall Tree that predicts, and does nothing else.

    Parameters
    ----------
    tree : RecallTree
        Copied.
    settings : Settings
    """

    def __init__(self, tree: RecallTree, settings: Settings) -> None:
        parts = {name: [array.ravel() for array in arrays] for name, arrays in _parts(tree).items()}
        self._shapes = _shapes(_parts(tree), settings)
        self._ints = np.concatenate(parts["ints"])
        self._offsets = np.concatenate(parts["offsets"])
        self._floats = np.concatenate(parts["floats"])
        self._doubles = np.concatenate(parts["doubles"])
        self._max_depth = settings.max_depth
        self._dense = not isinstance(tree.regressors.weights, Tables)

    def predict(self, X: Rows) -> IndexArray:
        """Return the best candidate of each row."""
        best = np.empty(n_rows_of(X), dtype=INDEX)
        self.predict_into(X, self.scratch(longest(X)), best)
        return best

    def predict_into(self, X: Rows, scratch: FrozenScratch, best: IndexArray) -> None:
        """Fill ``best``, with memory that was made before: the quickest way for one row."""
        ints, slots, floats, scores = scratch
        _predict_rows(
            X,
            self._shapes,
            self._ints,
            self._offsets,
            self._floats,
            self._doubles,
            ints,
            slots,
            floats,
            scores,
            best,
        )

    def scratch(self, n_entries: int) -> FrozenScratch:
        """Return memory for rows of so many entries; a thread needs its own."""
        made = new_scratch(n_entries, self._max_depth, dense=self._dense)
        ints = np.concatenate([made.idx, made.path, made.train_path, made.models, made.seen])
        return ints, made.slots, made.val, made.score

    @property
    def nbytes(self) -> int:
        """Size of the buffers."""
        buffers = (self._shapes, self._ints, self._offsets, self._floats, self._doubles)
        return sum(buffer.nbytes for buffer in buffers)


def _parts(tree: RecallTree) -> dict[str, list[AnyArray]]:
    """Return the arrays that a prediction needs, by dtype, as :func:`_thaw` takes them apart."""
    histograms, routers, regressors = tree.histograms, tree.routers, tree.regressors
    n = int(tree.sizes[0])
    out: dict[str, list[AnyArray]] = {
        "ints": [tree.nodes[:n], histograms.candidates[:n]],
        "offsets": [histograms.n_candidates[:n]],
        "floats": [tree.scales.largest, routers.bias[:n], regressors.bias],
        "doubles": [histograms.stats[:n]],
    }
    tables = [trimmed(regressors.extra, n)]
    if isinstance(routers.weights, Tables) and isinstance(regressors.weights, Tables):
        n_features = tree.scales.largest.size
        tables += [trimmed(routers.weights, n_features), trimmed(regressors.weights, n_features)]
    else:
        assert isinstance(routers.weights, np.ndarray)
        assert isinstance(regressors.weights, np.ndarray)
        out["floats"] += [routers.weights[:n], regressors.weights]
    for table in tables:
        out["ints"].append(table.keys)
        out["offsets"].append(table.owners)
        out["floats"].append(table.values)
    return out


def _shapes(parts: dict[str, list[AnyArray]], settings: Settings) -> OffsetArray:
    """Return a row for each array, (start, up to three dimensions), and one of settings."""
    rows = []
    for arrays in parts.values():
        start = 0
        for array in arrays:
            rows.append([start, *array.shape, *[1] * (3 - array.ndim)])
            start += array.size
    rows.append([settings.max_depth, int(settings.path_features), 0, 0])
    return np.array(rows, dtype=OFFSET)


@inlined
def _vector(buffer: AnyArray, shape: OffsetArray) -> AnyArray:
    return buffer[shape[0] : shape[0] + shape[1]]


@inlined
def _matrix(buffer: AnyArray, shape: OffsetArray) -> AnyArray:
    size = shape[1] * shape[2]
    return buffer[shape[0] : shape[0] + size].reshape(shape[1], shape[2])


@inlined
def _block(buffer: AnyArray, shape: OffsetArray) -> AnyArray:
    size = shape[1] * shape[2] * shape[3]
    return buffer[shape[0] : shape[0] + size].reshape(shape[1], shape[2], shape[3])


@inlined
def _table(
    ints: IndexArray,
    offsets: OffsetArray,
    floats: ParamArray,
    shapes: OffsetArray,
    first_int: int,
    first_offset: int,
    first_float: int,
) -> Tables:
    return Tables(
        _matrix(offsets, shapes[first_offset]),
        _vector(ints, shapes[first_int]),
        _matrix(floats, shapes[first_float]),
        offsets[:0],
    )


def _thaw(
    X: Rows,
    shapes: OffsetArray,
    ints: IndexArray,
    offsets: OffsetArray,
    floats: ParamArray,
    doubles: AccumArray,
) -> RecallTree:
    """Return the tree as views of the buffers; what only learning needs is empty."""
    raise TypeError("only called from kernels")


@overload(_thaw, inline="always")
def _thaw_of(X, shapes, ints, offsets, floats, doubles):
    # Rows of ``shapes``, in the order of _parts: ints, offsets, floats, doubles.
    if isinstance(X, types.Array):

        def dense(X, shapes, ints, offsets, floats, doubles):
            paths = _table(ints, offsets, floats, shapes, 2, 4, 10)
            histograms = Histograms(
                paths,
                _matrix(doubles, shapes[11]),
                _matrix(ints, shapes[1]),
                doubles[:0].reshape(0, 1),
                _vector(offsets, shapes[3]),
            )
            routers = Models(_matrix(floats, shapes[6]), _block(floats, shapes[8]), paths)
            regressors = Models(_matrix(floats, shapes[7]), _block(floats, shapes[9]), paths)
            scales = Scales(_vector(floats, shapes[5]), doubles[:0])
            nodes = _matrix(ints, shapes[0])
            return RecallTree(nodes, histograms, routers, regressors, scales, offsets[:0])

        return dense

    def sparse(X, shapes, ints, offsets, floats, doubles):
        paths = _table(ints, offsets, floats, shapes, 2, 6, 12)
        histograms = Histograms(
            paths,
            _matrix(doubles, shapes[15]),
            _matrix(ints, shapes[1]),
            doubles[:0].reshape(0, 1),
            _vector(offsets, shapes[5]),
        )
        routing = _table(ints, offsets, floats, shapes, 3, 7, 13)
        scoring = _table(ints, offsets, floats, shapes, 4, 8, 14)
        routers = Models(_matrix(floats, shapes[10]), routing, paths)
        regressors = Models(_matrix(floats, shapes[11]), scoring, paths)
        scales = Scales(_vector(floats, shapes[9]), doubles[:0])
        nodes = _matrix(ints, shapes[0])
        return RecallTree(nodes, histograms, routers, regressors, scales, offsets[:0])

    return sparse


@bare_kernel
def _predict_rows(
    X: Rows,
    shapes: OffsetArray,
    ints: IndexArray,
    offsets: OffsetArray,
    floats: ParamArray,
    doubles: AccumArray,
    scratch_ints: IndexArray,
    slots: OffsetArray,
    scratch_floats: ParamArray,
    scores: AccumArray,
    best: IndexArray,
) -> None:
    tree = _thaw(X, shapes, ints, offsets, floats, doubles)
    max_depth, path_features = shapes[-1, 0], shapes[-1, 1] != 0
    learning = Learning(LOGISTIC, 0.0, False)  # unused
    settings = Settings(max_depth, 0, 0.0, path_features, False, learning, learning)
    n_path = max_depth + 2
    n_entries = scratch_ints.size - 2 * n_path - 2 * MOST_MODELS
    path = n_entries + n_path
    scratch = Scratch(
        scratch_ints[:n_entries],
        scratch_floats[:n_entries],
        scratch_ints[n_entries:path],
        scratch_ints[path : path + n_path],
        scratch_ints[path + n_path : path + n_path + MOST_MODELS],
        scratch_ints[path + n_path + MOST_MODELS :],
        slots,
        scratch_floats[:0].reshape(0, MOST_MODELS),
        scratch_floats[:0].reshape(0, 1),
        scores,
        doubles[:0].reshape(0, 1),
    )
    for i in range(best.size):
        node = score_row(tree, X, i, settings, scratch)
        candidates, n = tree.histograms.candidates[node], tree.histograms.n_candidates[node]
        best[i] = best_candidate(candidates, n, scratch.score)
