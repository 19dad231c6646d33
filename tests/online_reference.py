"""Readable twins of the online learners: objects and dictionaries, float64, one example at a time.

They follow the papers' pseudocode and share no code with the library.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from scipy.optimize import brentq

Features = dict[Any, float]


def slope(loss: str, p: float, label: int) -> float:
    """Return the derivative of the loss by the prediction."""
    return p - label if loss == "squared" else -label / (1.0 + math.exp(label * p))


def flow(loss: str, p: float, label: int, time: float) -> float:
    """Return where infinitely small gradient steps lead a prediction in some time."""
    if loss == "squared":
        return label + (p - label) * math.exp(-time)
    margin = label * p
    if margin > 36 or time == 0:
        return p

    def excess(z: float) -> float:
        return (z - margin) + math.exp(min(z, 700.0)) - math.exp(margin) - time

    return label * brentq(excess, margin, margin + time, xtol=1e-13, rtol=1e-14)


class Scales:
    """Algorithm NAG's scales of features and mean squared length of rows."""

    def __init__(self) -> None:
        self.largest: dict[int, float] = defaultdict(float)
        self.weight = self.length = 0.0

    def scaled(self, x: np.ndarray) -> Features:
        """Return the nonzero entries over the scales of their features, and a constant."""
        row = {f: x[f] / self.largest[f] for f in np.flatnonzero(x) if self.largest[f] > 0}
        return {int(f): float(value) for f, value in row.items()} | {"bias": 1.0}

    def observe(self, x: np.ndarray) -> None:
        """Let scales grow."""
        for f in np.flatnonzero(x):
            self.largest[f] = max(self.largest[f], abs(float(x[f])))

    def count(self, x: np.ndarray, weight: float) -> None:
        """Take a row into the mean."""
        self.weight += weight
        self.length += weight * sum(value**2 for value in self.scaled(x).values())

    @property
    def factor(self) -> float:
        """How much rates are to be multiplied by."""
        return math.sqrt(self.weight / self.length)


class Linear:
    """One linear model with adaptive, importance-aware updates."""

    def __init__(self, loss: str = "logistic", rate: float = 1.0) -> None:
        self.loss, self.rate = loss, rate
        self.weights: dict[Any, float] = {}
        self.squares: dict[Any, float] = defaultdict(float)

    def score(self, x: Features) -> float:
        """Return w·x."""
        return sum(value * self.weights.get(f, 0.0) for f, value in x.items())

    def learn(
        self, x: Features, label: int, importance: float, factor: float, *, add: bool = True
    ) -> float:
        """Update; return the new prediction. Without ``add``, only features that are known."""
        p = self.score(x)
        if not add:
            new = [f for f in x if f != "bias" and f not in self.weights]
            x = {f: value for f, value in x.items() if f not in new}
        g = slope(self.loss, p, label)
        for f, value in x.items():
            self.squares[f] += importance * (g * value) ** 2
        reach = sum(value**2 / math.sqrt(self.squares[f]) for f, value in x.items())
        after = flow(self.loss, p, label, importance * self.rate * factor * reach)
        for f, value in x.items():
            step = (after - p) / reach * value / math.sqrt(self.squares[f])
            self.weights[f] = self.weights.get(f, 0.0) + step
        return after


# -- paper 002 -------------------------------------------------------------------------------------


class RecallNode:
    """Figure 2."""

    def __init__(self, number: int, depth: int, router: Linear) -> None:
        self.id, self.depth, self.f = number, depth, router
        self.left: RecallNode | None = None
        self.right: RecallNode | None = None
        self.hist: Counter[int] = Counter()
        self.shared = 0.0
        self.candidates: list[int] = []

    def forget(self, factor: float) -> None:
        """Let all counts be worth less."""
        self.hist = Counter({y: factor * count for y, count in self.hist.items()})
        self.shared *= factor

    @property
    def total(self) -> float:
        return sum(self.hist.values())

    def recall(self, multiplier: float) -> float:
        """Equation 1."""
        m = self.total
        if m == 0:
            return -math.inf
        r = sum(self.hist[y] for y in self.candidates) / m
        return r - math.sqrt(multiplier * r * (1 - r) / m) - multiplier / m

    def bits(self, extra: int | None = None, weight: float = 0.0) -> float:
        """Return the entropy of the labels, with one more, times their number."""
        hist = Counter(self.hist)
        if extra is not None:
            hist[extra] += weight
        m = sum(hist.values())
        return sum(c * math.log2(m / c) for c in hist.values() if c > 0)

    def update_candidates(self, y: int, weight: float, n: int) -> None:
        self.hist[y] += weight
        if y in self.candidates:
            return
        if len(self.candidates) < n:
            self.candidates.append(y)
            return
        least = min(self.candidates, key=lambda label: self.hist[label])
        if self.hist[y] > self.hist[least]:
            self.candidates[self.candidates.index(least)] = y

    def refill(self, n: int) -> None:
        others = [y for y in self.hist if y not in self.candidates]
        others.sort(key=lambda y: (-self.hist[y], y))
        self.candidates += others[: n - len(self.candidates)]


class RecallTree:
    """Algorithms 1 to 4."""

    def __init__(
        self,
        *,
        max_candidates: int | None = None,
        max_depth: int = 20,
        bound_multiplier: float = 1.0,
        path_features: bool = True,
        router_weight: str = "entropy",
        negatives: str = "all",
        loss: str = "logistic",
        router_loss: str = "logistic",
        learning_rate: float = 1.0,
        router_learning_rate: float = 1.0,
        recall_of: str = "node",
        two_paths: bool = False,
        half_life: float | None = None,
    ) -> None:
        self.__dict__.update({k: v for k, v in locals().items() if k != "self"})
        self.scales = Scales()
        self.score_of = defaultdict(lambda: Linear(loss, learning_rate))
        self.nodes: list[RecallNode] = []
        self.root = self._node(0)
        self.n_candidates = max_candidates or 0

    def _node(self, depth: int) -> RecallNode:
        router = Linear(self.router_loss, self.router_learning_rate)
        self.nodes.append(RecallNode(len(self.nodes), depth, router))
        return self.nodes[-1]

    def _recall(self, node: RecallNode) -> float:
        return node.recall(self.bound_multiplier)

    def _stops(self, n: RecallNode, c: RecallNode) -> bool:
        if self.recall_of == "child" and c.total > 0:
            return c.shared > self._recall(c) * c.total
        return self._recall(n) > self._recall(c)

    def _with_path(self, x: Features, node: RecallNode) -> Features:
        return x | {("path", node.id): 1.0} if self.path_features else x

    def predict(self, row: np.ndarray) -> int | None:
        """Algorithm 1."""
        routed = x = self.scales.scaled(row)
        n = self.root
        while n.left is not None:
            c = n.left if n.f.score(routed) > 0 else n.right
            if self._stops(n, c):
                break
            n = c
            x = self._with_path(x, n)
        if not n.candidates:
            return None
        return max(n.candidates, key=lambda y: (self.score_of[y].score(x), -y))

    def learn(self, row: np.ndarray, y: int, weight: float = 1.0) -> int | None:
        """Algorithm 2; return what algorithm 1 said before."""
        self.scales.observe(row)
        predicted = self.predict(row)
        self.scales.count(row, weight)
        self._update_n_candidates(y)
        routed = x = self.scales.scaled(row)
        n = self.root
        n.update_candidates(y, weight, self.n_candidates)
        closest, runner_up = math.inf, None
        while n.depth < self.max_depth:
            if n.left is None:
                n.left, n.right = self._node(n.depth + 1), self._node(n.depth + 1)
            self._update_router(routed, y, weight, n)
            f = n.f.score(routed)
            c, other = (n.left, n.right) if f > 0 else (n.right, n.left)
            if abs(f) < closest:
                closest, runner_up = abs(f), other
            is_shared = y in n.candidates
            c.update_candidates(y, weight, self.n_candidates)
            c.shared += weight * is_shared
            if self._stops(n, c):
                break
            n = c
            x = self._with_path(x, n)
        candidates = list(n.candidates)
        if self.two_paths and runner_up is not None:
            candidates += [label for label in self._end(runner_up, routed).candidates
                           if label not in candidates]  # fmt: skip
        self._update_regressors(x, y, weight, candidates)
        if self.half_life is not None:
            for node in self.nodes:
                node.forget(0.5 ** (1.0 / self.half_life))
        return predicted

    def _end(self, n: RecallNode, routed: Features) -> RecallNode:
        while n.left is not None:
            c = n.left if n.f.score(routed) > 0 else n.right
            if self._stops(n, c):
                break
            n = c
        return n

    def _update_router(self, x: Features, y: int, weight: float, n: RecallNode) -> None:
        """Algorithm 3."""
        if_left = n.left.bits(y, weight) + n.right.bits()
        if_right = n.left.bits() + n.right.bits(y, weight)
        difference = if_left - if_right
        if abs(difference) < 1e-9:
            return
        importance = abs(difference) if self.router_weight == "entropy" else weight
        n.f.learn(x, 1 if difference < 0 else -1, importance, self.scales.factor)

    def _update_regressors(self, x: Features, y: int, weight: float, candidates: list[int]) -> None:
        """Algorithm 4."""
        if y not in candidates:
            return
        n_path = sum(isinstance(f, tuple) for f in x)
        factor = 1.0 / math.sqrt(self.scales.factor**-2 + n_path)
        for label in candidates:
            sign = 1 if label == y else -1
            add = self.negatives == "all" or label == y
            self.score_of[label].learn(x, sign, weight, factor, add=add)

    def _update_n_candidates(self, y: int) -> None:
        if self.max_candidates is not None:
            return
        wanted = min(max(4 * math.ceil(math.log2(len({*self.root.hist, y}))), 2), 64)
        if wanted > self.n_candidates:
            self.n_candidates = wanted
            for node in self.nodes:
                node.refill(wanted)


# -- LOMTree ---------------------------------------------------------------------------------------


class LomNode:
    """A leaf, or a router with what it knows of classes."""

    def __init__(self, parent: LomNode | None = None) -> None:
        self.set_node(parent)

    def set_node(self, parent: LomNode | None) -> None:
        self.parent = parent
        self.left: LomNode | None = None
        self.right: LomNode | None = None
        self.router: Linear | None = None
        self.seen: Counter[int] = Counter()
        self.trained: Counter[int] = Counter()
        self.directions: Counter[int] = Counter()
        self.majority = parent.majority if parent else None
        self.size = 0.0

    def smallest(self) -> float:
        """C: examples at the smallest leaf below."""
        if self.left is None:
            return self.size
        return min(self.left.smallest(), self.right.smallest())

    def count(self, y: int, weight: float) -> None:
        self.seen[y] += weight
        if self.majority is None or self.seen[y] > self.seen[self.majority]:
            self.majority = y


class LomTree:
    """Equation 6 of paper 004 with two children; the algorithm of Choromanska & Langford 2015."""

    def __init__(
        self,
        *,
        max_routers: int | None = None,
        swap_resistance: float = 4.0,
        loss: str = "logistic",
        learning_rate: float = 1.0,
    ) -> None:
        self.max_routers, self.swap_resistance = max_routers, swap_resistance
        self.loss, self.rate = loss, learning_rate
        self.root, self.scales = LomNode(), Scales()
        self.n_routers = self.n_swaps = 0

    def leaf(self, row: np.ndarray) -> LomNode:
        """Return the leaf that a row reaches."""
        x, node = self.scales.scaled(row), self.root
        while node.left is not None:
            node = node.right if node.router.score(x) > 0 else node.left
        return node

    def learn(self, row: np.ndarray, y: int, weight: float = 1.0) -> int | None:
        """Learn an example; return what was predicted before."""
        self.scales.observe(row)
        predicted = self.leaf(row).majority
        self.scales.count(row, weight)
        x, node = self.scales.scaled(row), self.root
        while node.left is not None:
            node.count(y, weight)
            n_trained = sum(node.trained.values())
            mean = sum(node.directions.values()) / n_trained if n_trained else 0.0
            of_label = node.directions[y] / node.trained[y] if node.trained[y] else 0.0
            f = node.router.learn(x, -1 if mean > of_label else 1, weight, self.scales.factor)
            h = math.tanh(f / 2) if self.loss == "logistic" else min(max(f, -1.0), 1.0)
            node.trained[y] += weight
            node.directions[y] += weight * h
            node = node.right if f > 0 else node.left
        node.count(y, weight)
        if len(node.seen) > 1:
            limit = self.max_routers
            if limit is None:
                limit = len(self.root.seen) - 1
            if self.n_routers < limit:
                self.n_routers += 1
                self._become_router(
                    node, Linear(self.loss, self.rate), LomNode(node), LomNode(node)
                )
            else:
                self._swap(node)
        if node.left is None:
            node.size += weight
        return predicted

    def _become_router(self, node: LomNode, router: Linear, left: LomNode, right: LomNode) -> None:
        left.set_node(node)
        right.set_node(node)
        left.size = math.floor(node.size / 2)
        right.size = node.size - left.size
        node.left, node.right, node.router = left, right, router

    def _swap(self, leaf: LomNode) -> None:
        others = leaf.size - leaf.seen[leaf.majority]
        if others <= self.swap_resistance * (self.root.smallest() + 1):
            return
        s = self.root
        while s.left is not None:
            s = s.left if s.left.smallest() <= s.right.smallest() else s.right
        parent = s.parent
        if s is leaf or parent is None or parent.parent is None:
            return
        self.n_swaps += 1
        sibling = parent.right if parent.left is s else parent.left
        grandparent = parent.parent
        if grandparent.left is parent:
            grandparent.left = sibling
        else:
            grandparent.right = sibling
        sibling.parent = grandparent
        self._become_router(leaf, parent.router, s, parent)


# -- one-against-all -------------------------------------------------------------------------------


class OneVsAll:
    """Every class learns every example."""

    def __init__(self, *, loss: str = "logistic", learning_rate: float = 1.0) -> None:
        self.loss, self.rate = loss, learning_rate
        self.scales, self.regressors = Scales(), []

    def learn(self, row: np.ndarray, y: int, weight: float = 1.0) -> int | None:
        """Learn an example; return what was predicted before."""
        self.scales.observe(row)
        x = self.scales.scaled(row)
        scores = [model.score(x) for model in self.regressors]
        self.scales.count(row, weight)
        while len(self.regressors) <= y:
            self.regressors.append(Linear(self.loss, self.rate))
        for label, model in enumerate(self.regressors):
            model.learn(x, 1 if label == y else -1, weight, self.scales.factor)
        return int(np.argmax(scores)) if scores else None
