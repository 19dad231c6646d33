"""A Recall Tree that owns its arrays: they grow as :mod:`thinleaf.online.recall_tree` asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    NO_CHILD,
    OFFSET,
    PARAM,
    AccumArray,
    AnyArray,
    IndexArray,
    OffsetArray,
)
from thinleaf.arrays.ragged import offsets
from thinleaf.arrays.rows import Rows, n_rows_of
from thinleaf.online.beam import (
    Mixtures,
    mix_rows,
    mixed_classes,
    new_mixtures,
    new_paths,
    new_prior,
    outside_mass,
)
from thinleaf.online.growable import (
    check_contents,
    check_models,
    check_scales,
    check_tables,
    first_models,
    learn_in_pieces,
    require,
    with_models,
    with_slots,
)
from thinleaf.online.histogram import (
    MOST_CANDIDATES,
    SHARED,
    TOTAL,
    Histograms,
    enlarged_histograms,
    new_histograms,
)
from thinleaf.online.linear_models import Scratch, new_models, new_scratch
from thinleaf.online.one_path import candidate_biases, predict_rows, score_rows
from thinleaf.online.recall_tree import (
    DEPTH,
    LEFT,
    N_CANDIDATES,
    N_NODES,
    RIGHT,
    ROOT,
    RecallTree,
    Settings,
    bound_now,
    learn_rows,
)
from thinleaf.online.scaled_rows import Stream, longest, new_scales
from thinleaf.online.softmax_form import Unrolled, breadth_first, plain_weights
from thinleaf.online.tables import COUNT, EMPTY, Contents, contents, first_owners

_NONE = np.empty(0, dtype=INDEX)
_PART = 256
"""Rows whose mixtures are in memory at a time."""


class RecallTreeModel:
    """A Recall Tree and its settings.

    Parameters
    ----------
    n_features : int
    settings : Settings
    dense : bool
        Whether rows are dense.
    """

    def __init__(self, n_features: int, settings: Settings, *, dense: bool) -> None:
        self.settings = settings
        self._n_features = n_features
        self.state = RecallTree(
            _new_nodes(1),
            new_histograms(1, settings.max_candidates or MOST_CANDIDATES),
            new_models(1, n_features, 0, dense=dense),
            new_models(1, n_features, 1, dense=dense),
            new_scales(n_features),
            np.array([1, settings.max_candidates, 0], dtype=OFFSET),
            np.zeros(settings.max_depth + 1, dtype=OFFSET),
        )

    def learn(self, stream: Stream, n_classes: int) -> IndexArray:
        """Learn rows in order; return what was predicted of each before it was learned.

        Returns
        -------
        predicted : ndarray of shape (n_rows,)
            Class ids, -1 where there was no class yet.
        """
        regressors = with_models(self.state.regressors, n_classes)
        self.state = self.state._replace(regressors=regressors)
        scratch = self._scratch(stream.X)

        def step(done: int, predicted: IndexArray, needed: OffsetArray) -> int:
            return learn_rows(self.state, stream, done, self.settings, scratch, predicted, needed)

        return learn_in_pieces(step, self._enlarge, stream.order.size, 5)

    def predict(self, X: Rows) -> IndexArray:
        """Return the best candidate of each row."""
        best = np.empty(n_rows_of(X), dtype=INDEX)
        predict_rows(self.state, X, self.settings, self._scratch(X), best)
        return best

    def shortlists(self, X: Rows) -> tuple[IndexArray, AccumArray]:
        """Return the node that each row reaches, and the scores of its candidates."""
        nodes = np.empty(n_rows_of(X), dtype=INDEX)
        scores = np.empty((nodes.size, self.state.histograms.candidates.shape[1]), dtype=ACCUM)
        score_rows(self.state, X, self.settings, self._scratch(X), nodes, scores)
        return nodes, scores

    def candidates(self, node: int) -> IndexArray:
        """Return the classes that a node's scores are of."""
        histograms = self.state.histograms
        return histograms.candidates[node, : histograms.n_candidates[node]]

    def outside(self, node: int) -> float:
        """Return the share of labels at a node that are no candidates, half a label added."""
        return float(outside_mass(self.state, node, self.settings))

    def predict_mixed(
        self, X: Rows, counts: AccumArray, beam: int, temperature: float
    ) -> IndexArray:
        """Return the most probable class of each row, over several paths."""
        best = np.empty(n_rows_of(X), dtype=INDEX)
        prior, scratch = new_prior(counts, beam), self._scratch(X)
        paths = new_paths(beam, self.settings.max_depth, counts.size)
        sharpness = 1.0 / temperature
        mixed_classes(self.state, X, sharpness, prior, self.settings, scratch, paths, best)
        return best

    def mixtures(
        self, X: Rows, counts: AccumArray, beam: int, temperature: float, *, smooth: bool = True
    ) -> Iterator[tuple[int, Mixtures]]:
        """Return the candidates of several paths, with their probabilities, some rows at a time.

        Each part comes with its first row.
        """
        prior, scratch = new_prior(counts, beam), self._scratch(X)
        paths = new_paths(beam, self.settings.max_depth, counts.size)
        n_rows, sharpness = n_rows_of(X), 1.0 / temperature
        for first in range(0, n_rows, _PART):
            part = new_mixtures(min(_PART, n_rows - first), beam)
            mix_rows(
                self.state, X, first, smooth, sharpness, prior, self.settings, scratch, paths, part
            )
            yield first, part

    def unrolled(self, n_classes: int) -> Unrolled:
        """Return the tree that predicts as this model does now."""
        state = self.state
        children, source = breadth_first(ROOT, self._next_nodes)
        is_leaf = children[:, 0] == NO_CHILD
        classes = [
            self.candidates(node) if leaf else _NONE
            for node, leaf in zip(source.tolist(), is_leaf, strict=True)
        ]
        bias = np.zeros((source.size, state.histograms.candidates.shape[1]), dtype=PARAM)
        candidate_biases(state, source, self._parents, self.settings.path_features, bias)
        router = np.maximum((state.nodes[source, LEFT] - 1) // 2, 0)
        # f(x) > 0 leads left here; there, f(x) >= 0 leads right
        return Unrolled(
            children,
            router,
            np.where(is_leaf, 0, -state.routers.bias[router, 0]).astype(PARAM),
            -plain_weights(state.routers, state.scales, _n_routers(int(state.sizes[N_NODES]))),
            classes,
            [own[: ids.size] for own, ids in zip(bias, classes, strict=True)],
            np.array([self.outside(node) for node in source], dtype=ACCUM),
            plain_weights(state.regressors, state.scales, n_classes),
        )

    def _next_nodes(self, node: int) -> tuple[int, int] | None:
        """Return where rows may go from a node, ``-1 - node`` if they stop; None if all do."""
        left, right = self.state.nodes[node, :DEPTH].tolist()
        if left == NO_CHILD:
            return None
        below = [-1 - node if self._stops(node, child) else child for child in (left, right)]
        return None if below[0] == below[1] else (below[0], below[1])

    def _stops(self, node: int, child: int) -> bool:
        """Whether rows stop at a node: :func:`thinleaf.online.recall_tree.stops`."""
        stats, bound = self.state.histograms.stats[child], self._bound(child)
        if self.settings.own_recall and stats[TOTAL] > 0.0:
            return bool(stats[SHARED] > bound * stats[TOTAL])
        return self._bound(node) > bound

    def _bound(self, node: int) -> float:
        return float(bound_now(self.state, node, self.settings))

    @property
    def _parents(self) -> IndexArray:
        nodes = self.state.nodes[: self.state.sizes[N_NODES]]
        parents = np.full(nodes.shape[0], EMPTY, dtype=INDEX)
        for side in (LEFT, RIGHT):
            inner = np.flatnonzero(nodes[:, side] != NO_CHILD)
            parents[nodes[inner, side]] = inner
        return parents

    def trimmed(self, n_classes: int) -> RecallTree:
        """Return the state without room for what is to come."""
        state, n = self.state, int(self.state.sizes[N_NODES])
        held = state.histograms
        return RecallTree(
            state.nodes[:n],
            Histograms(
                first_owners(held.counts, n),
                held.stats[:n],
                held.candidates[:n],
                held.candidate_counts[:n],
                held.n_candidates[:n],
            ),
            first_models(state.routers, _n_routers(n), 0),
            first_models(state.regressors, n_classes, n),
            state.scales,
            state.sizes,
            state.most_labels,
        )

    def _check_labels(self, n_classes: int) -> None:
        """Raise ``ValueError`` unless all labels of a node have passed it: room depends on it."""
        state, held = self.state, self.state.histograms
        counted, paths = (
            contents(table, state.nodes.shape[0]) for table in (held.counts, state.regressors.extra)
        )
        nodes = np.repeat(np.arange(state.nodes.shape[0]), np.diff(counted.ptr))
        known = nodes * n_classes + counted.keys
        below = nodes > ROOT
        passed = self._parents[nodes[below]].astype(OFFSET) * n_classes + counted.keys[below]
        on_path = np.repeat(np.arange(state.nodes.shape[0]), np.diff(paths.ptr))
        at, slot = np.nonzero(np.arange(held.candidates.shape[1]) < held.n_candidates[:, None])
        for found in (
            passed,
            on_path * n_classes + paths.keys,
            at * n_classes + held.candidates[at, slot],
        ):
            require(bool(np.all(np.isin(found, known))), "a node has labels that have not passed")

    def _most_labels(self) -> OffsetArray:
        """Return ``RecallTree.most_labels``, counted anew."""
        most = np.zeros(self.settings.max_depth + 1, dtype=OFFSET)
        n_labels = self.state.histograms.counts.owners[:, COUNT]
        np.maximum.at(most, self.state.nodes[: n_labels.size, DEPTH], n_labels)
        return most

    def check(self, n_classes: int) -> None:
        """Raise ``ValueError`` unless kernels may work with a state that was stored."""
        state, settings = self.state, self.settings
        n, held = state.nodes.shape[0], state.histograms
        width = settings.max_candidates or MOST_CANDIDATES
        require(state.nodes.shape == (n, 3) and n > 0, "nodes must have three columns")
        require(state.sizes.shape == (3,) and state.sizes[N_NODES] == n, "sizes must fit nodes")
        require(settings.max_candidates <= state.sizes[N_CANDIDATES] <= width, "F is out of range")
        _check_structure(state.nodes, settings.max_depth)
        check_tables("counts", held.counts, n, n_classes)
        require(held.stats.shape == (n, 4), "stats must have four columns")
        fits = held.candidates.shape == held.candidate_counts.shape == (n, width)
        require(fits and held.n_candidates.shape == (n,), "candidates must fit nodes")
        counts = held.n_candidates
        require(bool(np.all((counts >= 0) & (counts <= width))), "n_candidates is out of range")
        require(
            bool(np.all((held.candidates >= EMPTY) & (held.candidates < n_classes))),
            "candidates are out of range",
        )
        for node in range(n):
            own = self.candidates(node)
            require(bool(np.all(own >= 0)) and np.unique(own).size == own.size, "candidates repeat")
        check_models("routers", state.routers, _n_routers(n), self._n_features, 0)
        check_models("regressors", state.regressors, n_classes, self._n_features, n)
        self._check_labels(n_classes)
        fits = np.array_equal(state.most_labels, self._most_labels())
        require(fits, "most_labels must be the largest counts")
        check_scales(state.scales, self._n_features)

    def _scratch(self, X: Rows) -> Scratch:
        return new_scratch(longest(X), self.settings.max_depth, dense=isinstance(X, np.ndarray))

    def _enlarge(self, nodes: int, counts: int, paths: int, weights: int, routing: int) -> None:
        state = self.state
        held = state.nodes.shape[0]
        if nodes > held:
            more = _new_nodes(max(nodes, 2 * held) - held)
            state = state._replace(nodes=np.concatenate([state.nodes, more]))
        nodes = state.nodes.shape[0]
        self.state = state._replace(
            histograms=enlarged_histograms(state.histograms, nodes, counts),
            routers=with_slots(with_models(state.routers, _n_routers(nodes)), routing),
            regressors=with_slots(state.regressors, weights, nodes, paths),
        )


def _n_routers(n_nodes: int) -> int:
    """Return how many nodes have children; at first there is one router for the root, too."""
    return max(n_nodes // 2, 1)


def without_leaf_routers(arrays: Mapping[str, AnyArray], prefix: str) -> dict[str, AnyArray]:
    """Return a stored state as it is now: files of former versions have a router for each node."""
    out, routers = dict(arrays), f"{prefix}routers."
    nodes, bias = out.get(f"{prefix}nodes"), out.get(f"{routers}bias")
    if nodes is None or bias is None or nodes.ndim != 2 or nodes.shape[1] != 3:
        return out
    inner = np.flatnonzero(nodes[:, LEFT] != NO_CHILD)
    if not inner.size or bias.shape[:1] != nodes.shape[:1]:
        return out
    inner = inner[np.argsort(nodes[inner, LEFT])]
    out[f"{routers}bias"] = bias[inner]
    if f"{routers}weights" in out:
        out[f"{routers}weights"] = out[f"{routers}weights"][inner]
        return out
    ptr, keys, values = (out.get(f"{routers}weights.{name}") for name in ("ptr", "keys", "values"))
    if ptr is None or keys is None or values is None or keys.max(initial=0) >= nodes.shape[0]:
        return out
    check_contents("routers", Contents(ptr, keys, values), 2)
    number = np.full(nodes.shape[0], EMPTY, dtype=keys.dtype)
    number[inner] = np.arange(inner.size)
    features = np.repeat(np.arange(ptr.size - 1), np.diff(ptr))
    order = np.lexsort((number[keys], features))
    order = order[number[keys[order]] != EMPTY]
    out[f"{routers}weights.ptr"] = offsets(
        np.bincount(features[order], minlength=ptr.size - 1), ptr.dtype
    )
    out[f"{routers}weights.keys"] = number[keys[order]]
    out[f"{routers}weights.values"] = values[order]
    return out


def _new_nodes(n_nodes: int) -> IndexArray:
    nodes = np.full((n_nodes, 3), NO_CHILD, dtype=INDEX)
    nodes[:, DEPTH] = 0
    return nodes


def _check_structure(nodes: IndexArray, max_depth: int) -> None:
    """Raise ``ValueError`` unless nodes are a tree: children come later, and are deeper by one."""
    inner = np.flatnonzero(nodes[:, LEFT] != NO_CHILD)
    below = nodes[inner, :DEPTH]
    require(np.array_equal(nodes[:, LEFT] == NO_CHILD, nodes[:, RIGHT] == NO_CHILD), "half a node")
    require(np.array_equal(np.sort(below.ravel()), np.arange(1, nodes.shape[0])), "no tree")
    pairs = np.all(below[:, 0] % 2 == 1) and np.array_equal(below[:, 1], below[:, 0] + 1)
    require(bool(pairs), "children are no pairs")
    require(bool(np.all(below > inner[:, None])), "a child comes before its parent")
    require(nodes[ROOT, DEPTH] == 0, "the root must have depth 0")
    deeper = nodes[below, DEPTH] == nodes[inner, DEPTH][:, None] + 1
    require(bool(np.all(deeper)), "a child must be deeper by one")
    require(int(nodes[:, DEPTH].max()) <= max_depth, "the tree is too deep")
