"""Explanations of packed trees and forests, with one path or a beam."""

from __future__ import annotations

import weakref
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thinleaf._dtypes import (
    ACCUM,
    INDEX,
    OFFSET,
    PARAM,
    AccumArray,
    AnyArray,
    IndexArray,
    ParamArray,
)
from thinleaf.arrays.ragged import offsets, ranges
from thinleaf.arrays.rows import CSR, Rows, as_writable
from thinleaf.model.explanation.explainer import Explainer, sigmoid
from thinleaf.model.explanation.names import FeatureNames
from thinleaf.model.explanation.sums import additive
from thinleaf.model.explanation.values import (
    Against,
    Answer,
    Candidate,
    Explanation,
    Path,
    Score,
    Step,
)
from thinleaf.model.importance import PackedRouters
from thinleaf.model.kernels import explanation as kernels
from thinleaf.model.kernels.packed import OK
from thinleaf.model.packed_weights import leaf_weights, router_weights

if TYPE_CHECKING:
    from thinleaf.model.packed_predictor import PackedPredictor


class PackedExplainer(Explainer):
    """Explains packed trees and forests.

    Parameters
    ----------
    predictor : PackedPredictor
    """

    def __init__(self, predictor: PackedPredictor) -> None:
        self.predictor: PackedPredictor = weakref.proxy(predictor)  # which keeps its explainer
        self.packed = packed = predictor.packed
        self.temperature = predictor.temperature if predictor.beam > 1 else 1.0
        self.leaf_nodes: list[int] = np.flatnonzero(packed.child < 0).tolist()
        routers = np.flatnonzero(packed.child >= 0)
        self._parent = np.full(packed.n_nodes, -1, dtype=INDEX)
        self._parent[packed.child[routers]] = routers
        self._parent[packed.child[routers] + 1] = routers
        self._n_paths = predictor.beam * packed.n_trees
        self._trails: dict[int, tuple[int, ...]] = {}

    def explain(
        self, x: AnyArray, values: AnyArray | None, *, against: int | None, top: int,
        names: FeatureNames,
    ) -> Explanation:  # fmt: skip
        """Explain one sample."""
        sample = Sample.of(x, values, names, self.packed.sparse, self.packed.n_features)
        leaves, weights = self._paths(sample.rows)
        ids, p = self.predictor.top_k(sample.rows, top)
        walk = Walk(self, sample, leaves, weights, ids[0])
        answers = walk.answers(ids[0], p[0])
        why_not = None
        if against is not None:
            from thinleaf.model.explanation.packed_routes import routes_to

            own = np.array([against], dtype=INDEX)
            (answer,) = walk.answers(own, self.predictor.probability_of(sample.rows, own))
            why_not = Against(answer, routes_to(self, walk, against))
        return Explanation(
            answers,
            walk.paths(top),
            len(self.predictor.label_list),
            self.packed.n_trees,
            self.predictor.beam,
            self.temperature,
            why_not,
            names,
        )

    @cached_property
    def routers(self) -> PackedRouters:
        """The routers by node."""
        return PackedRouters(self.packed)

    def trail(self, leaf: int) -> tuple[int, ...]:
        """Return the nodes from a root to a leaf."""
        known = self._trails.get(leaf)
        if known is None:
            nodes, node = [], self.leaf_nodes[leaf]
            while node >= 0:
                nodes.append(node)
                node = int(self._parent[node])
            known = self._trails[leaf] = tuple(reversed(nodes))
        return known

    def _paths(self, rows: Rows) -> tuple[list[int], list[float]]:
        """Return the leaves that a row's paths end in and their weights, the weightiest first."""
        leaves = np.empty(self._n_paths, dtype=INDEX)
        weights = np.empty(self._n_paths, dtype=ACCUM)
        n = kernels.paths_of_row(self.predictor.table, rows, leaves, weights)
        order = np.argsort(-weights[:n], kind="stable")
        return leaves[order].tolist(), weights[order].tolist()


class Sample(NamedTuple):
    """One input, as rows of the tree's layout and as entries."""

    rows: Rows
    features: IndexArray
    values: ParamArray
    names: FeatureNames

    @classmethod
    def of(
        cls, x: AnyArray, values: AnyArray | None, names: FeatureNames, sparse: bool, width: int
    ) -> Sample:
        """Return a sample in a layout, as prediction converts it."""
        if sparse:
            if values is None:
                features = np.flatnonzero(x).astype(INDEX)
                values = x[features]
            else:
                features = x
            ptr = np.array([0, features.size], dtype=INDEX)
            return cls(as_writable(CSR(ptr, features, values, width)), features, values, names)
        if values is not None:
            entries, x = (x, values), np.zeros(width, dtype=PARAM)
            np.add.at(x, *entries)
        features = np.flatnonzero(x).astype(INDEX)
        return cls(as_writable(x[None]), features, x[features], names)


class Walk:
    """What a model computes for one sample: scores of routers and leaves, and their parts.

    Parameters
    ----------
    explainer : PackedExplainer
    sample : Sample
    leaves : list of int
        Where paths end.
    weights : list of float
    shown : ndarray
        Classes that are shown of each leaf that holds them.
    """

    def __init__(
        self,
        explainer: PackedExplainer,
        sample: Sample,
        leaves: list[int],
        weights: list[float],
        shown: IndexArray,
    ) -> None:
        self.explainer, self.packed, self.sample = explainer, explainer.packed, sample
        self.leaves, self.weights, self.shown = leaves, weights, shown
        self.labels = explainer.predictor.label_list
        packed, trails = self.packed, [explainer.trail(leaf) for leaf in leaves]
        self._nodes = np.array(sorted({n for t in trails for n in t[:-1]}), dtype=INDEX)
        self._column = {node: i for i, node in enumerate(self._nodes.tolist())}
        ends = np.array(leaves, dtype=INDEX)
        self._ptr = offsets(packed.class_ptr[ends + 1] - packed.class_ptr[ends])
        self._entries = ranges(packed.class_ptr[ends], np.diff(self._ptr))
        self._router_scores = np.empty(self._nodes.size, dtype=PARAM)
        self._leaf_scores = np.empty(self._ptr[-1], dtype=PARAM)
        status = kernels.scores_of_row(
            explainer.predictor.table, sample.rows, self._nodes, self._router_scores, ends,
            self._ptr, self._leaf_scores,
        )  # fmt: skip
        if status != OK:
            explainer.predictor.fail(status, None)
        scores = self._leaf_scores.astype(ACCUM)
        sizes, begin = np.diff(self._ptr), self._ptr[:-1]
        scores = np.exp(scores - np.repeat(np.maximum.reduceat(scores, begin), sizes))
        self._softmax: AccumArray = scores / np.repeat(np.add.reduceat(scores, begin), sizes)
        self._steps: dict[tuple[int, int], Step] = {}

    # -- answers -----------------------------------------------------------------------------------

    def answers(self, ids: IndexArray, p: AccumArray) -> tuple[Answer, ...]:
        """Return some classes with what each path gives to them."""
        packed, n = self.packed, self.packed.n_classes
        ends, weights = np.array(self.leaves), np.array(self.weights)
        number = np.arange(ends.size)
        keys = np.repeat(number, np.diff(self._ptr)) * n + packed.class_ids[self._entries]
        wanted = (number[:, None] * n + ids).ravel()
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        held = (keys[at] == wanted).reshape(ends.size, ids.size)
        inside = self._softmax[at].reshape(held.shape) * packed.inside[ends][:, None]
        prior = np.repeat(packed.prior[ids][None], ends.size, axis=0)
        sizes = packed.extra_ptr[ends + 1] - packed.extra_ptr[ends]
        if sizes.any():
            entries = ranges(packed.extra_ptr[ends], sizes)
            seen = np.flatnonzero(np.isin(packed.extra_ids[entries], ids))
            where = {class_id: i for i, class_id in enumerate(ids.tolist())}
            path = np.repeat(number, sizes)
            for t in seen.tolist():
                column = where[int(packed.extra_ids[entries[t]])]
                prior[path[t], column] += packed.extra[entries[t]]
        parts = weights[:, None] * np.where(held, inside, packed.outside[ends][:, None] * prior)
        _, parts, rounding = additive(p, np.zeros(ids.size), parts)
        return tuple(
            Answer(self.labels[i], value, tuple(own), rest)
            for i, value, own, rest in zip(
                ids.tolist(), p.tolist(), parts.T.tolist(), rounding.tolist(), strict=True
            )
        )

    # -- paths -------------------------------------------------------------------------------------

    def paths(self, top: int) -> tuple[Path, ...]:
        """Return all paths; their steps and candidates are made when they are looked at."""
        sizes = np.diff(self._ptr).tolist()
        return tuple(
            Path(
                self.explainer.trail(leaf)[0],
                self.weights[i],
                leaf,
                self.explainer.leaf_nodes[leaf],
                sizes[i],
                1.0 - float(self.packed.inside[leaf]),
                partial(self.steps, i),
                partial(self.candidates, i, top),
            )
            for i, leaf in enumerate(self.leaves)
        )

    def steps(self, i: int) -> tuple[Step, ...]:
        """Return the routers on the way to an end."""
        trail = self.explainer.trail(self.leaves[i])
        return tuple(
            self.step(node, below - int(self.packed.child[node]), depth)
            for depth, (node, below) in enumerate(pairwise(trail))
        )

    def step(self, node: int, branch: int, depth: int) -> Step:
        """Return a router on the way, and that the path takes one of its branches."""
        step = self._steps.get((node, branch))
        if step is None:
            i = self._column[node]
            total, bias, amounts, rounding = self._margins
            sign = 1.0 if branch == 1 else -1.0
            margin = self.score(
                sign * total[i], sign * bias[i], sign * amounts[:, i], sign * rounding[i]
            )
            p = float(sigmoid(margin.total / self.explainer.temperature))
            other = float(sigmoid(-margin.total / self.explainer.temperature))
            step = Step(node, depth, branch, 1 - branch, 2, margin, p, other)
            self._steps[node, branch] = step
        return step

    @cached_property
    def _margins(self) -> tuple[AccumArray, AccumArray, AccumArray, AccumArray]:
        weights = router_weights(self.packed, self._nodes, self.sample.features)
        amounts = self.sample.values.astype(ACCUM)[:, None] * weights
        total = self._router_scores.astype(ACCUM)
        return total, *additive(total, self.packed.bias[self._nodes].astype(ACCUM), amounts)

    def score(self, total: float, bias: float, amounts: AccumArray, rounding: float) -> Score:
        """Return a score of the sample."""
        sample = self.sample
        return Score(
            float(total), float(bias), float(rounding), sample.features, sample.values, amounts,
            sample.names,
        )  # fmt: skip

    # -- leaves ------------------------------------------------------------------------------------

    def candidates(self, i: int, top: int) -> tuple[Candidate, ...]:
        """Return the best classes of a leaf, and those that are to be shown of it."""
        p = self._softmax[self._ptr[i] : self._ptr[i + 1]]
        best = self.ranked(i)[: max(top, 2)]
        classes, taken = self.classes(i), set(best.tolist())
        at = np.minimum(np.searchsorted(classes, self.shown), classes.size - 1)
        shown = sorted({t for t in at[classes[at] == self.shown].tolist() if t not in taken})
        others = np.array(sorted(shown, key=lambda t: -p[t]), dtype=OFFSET)
        return self.some_candidates(i, np.concatenate([best, others]))

    def classes(self, i: int) -> IndexArray:
        """Return the classes of a leaf."""
        return self.packed.class_ids[self._entries[self._ptr[i] : self._ptr[i + 1]]]

    def ranked(self, i: int) -> AnyArray:
        """Return the places of a leaf's classes, best first."""
        return np.argsort(-self._softmax[self._ptr[i] : self._ptr[i + 1]], kind="stable")

    def some_candidates(self, i: int, slots: AnyArray) -> tuple[Candidate, ...]:
        """Return the classes at some places of a leaf."""
        leaf, classes = self.leaves[i], self.classes(i)
        total, bias, amounts = self._leaf_parts(i, slots)
        bias, amounts, rounding = additive(total, bias, amounts)
        inside = float(self.packed.inside[leaf])
        return tuple(
            Candidate(
                self.labels[int(classes[slot])],
                inside * float(self._softmax[self._ptr[i] + slot]),
                self.score(total[c], bias[c], amounts[:, c], rounding[c]),
            )
            for c, slot in enumerate(slots.tolist())
        )

    def lead(self, i: int, first: int, second: int) -> Score:
        """Return how far one class of a leaf is ahead of another."""
        total, bias, amounts = self._leaf_parts(i, np.array([first, second], dtype=OFFSET))
        difference = (np.array([total[0] - total[1]]), np.array([bias[0] - bias[1]]))
        bias, amounts, rounding = additive(*difference, amounts[:, :1] - amounts[:, 1:])
        return self.score(difference[0][0], bias[0], amounts[:, 0], rounding[0])

    def _leaf_parts(self, i: int, slots: AnyArray) -> tuple[AccumArray, AccumArray, AccumArray]:
        own = self._entries[self._ptr[i] + slots]
        weights = leaf_weights(self.packed, self.leaves[i], self.sample.features)[:, slots]
        return (
            self._leaf_scores[self._ptr[i] + slots].astype(ACCUM),
            self.packed.leaf_bias[own].astype(ACCUM),
            self.sample.values.astype(ACCUM)[:, None] * weights,
        )
