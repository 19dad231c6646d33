"""Settings of a Recall Tree, found by progressive loss: rows are predicted before they are learned.

Trees with different settings learn the same first rows of a stream and predict the rows that come
next. Settings change one after the other, from two starts: trees that stop where all labels of a
node are candidates, and trees that go on to leaves of one label. Then passes, and last the beam. No
row is kept from the tree that is trained with the winner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from thinleaf._dtypes import ACCUM, AccumArray, IndexArray
from thinleaf.arrays.rows import Rows, take_rows
from thinleaf.online.recall_model import RecallTreeModel
from thinleaf.online.recall_tree import Settings
from thinleaf.online.scaled_rows import Stream

FEWEST_ROWS: Final = 1000
"""With fewer rows there is no race."""
MOST_ROWS: Final = 100_000
"""Rows that trees of a race learn, at the most."""

JUDGED_BEAM: Final = 4
"""Paths of rows that judge settings; the beam itself is chosen last."""
PASSES: Final = (3, 6, 12, 20)
"""Passes of all settings, and those that are tried with the best ones."""
BEAMS: Final = (1, 2, 4, 8, 16)
TEMPERATURES: Final = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Choice:
    """What a tree is trained with, and how rows are predicted."""

    settings: Settings
    n_passes: int
    beam: int
    temperature: float
    tried: list[dict[str, Any]] = field(default_factory=list)


class Race:
    """Trees on the first rows of a stream, judged on the next ones.

    Parameters
    ----------
    make : callable
        Makes a tree with given settings.
    stream : Stream
    order : ndarray of row ids
        All rows, in the order of the first pass.
    n_classes : int
    rng : numpy.random.Generator
        For the order of further passes.
    """

    def __init__(
        self,
        make: Callable[[Settings], RecallTreeModel],
        stream: Stream,
        order: IndexArray,
        n_classes: int,
        rng: np.random.Generator,
    ) -> None:
        n_next = min(order.size // 4, 4000)
        n_first = min(order.size // 2, MOST_ROWS)
        self._make, self._stream, self._n_classes = make, stream, n_classes
        self.n_rows = order.size
        first = order[:n_first]
        self._passes = [first, *(rng.permutation(first) for _ in range(PASSES[-1] - 1))]
        following = order[n_first : n_first + n_next]
        self._next: Rows = take_rows(stream.X, following)
        self._labels = stream.labels[following]
        self._counts: AccumArray = np.bincount(
            stream.labels[first], stream.weights[first], minlength=n_classes
        ).astype(ACCUM)
        self.tried: list[dict[str, Any]] = []
        self._losses: dict[Settings, float] = {}
        self._trees: dict[Settings, RecallTreeModel] = {}

    def judge(self, settings: Settings) -> float:
        """Return the loss of settings after a few passes."""
        if settings not in self._losses or settings not in self._trees:
            model = self._trees[settings] = self._make(settings)
            self._learn(model, 0, PASSES[0])
            loss = self._losses[settings] = self._loss(model, JUDGED_BEAM, 1.0)
            self._note(settings, PASSES[0], JUDGED_BEAM, 1.0, loss)
        return self._losses[settings]

    def best_of(self, some: list[Settings]) -> Settings:
        """Return the settings with the lowest loss, of equal ones the first; forget other trees."""
        best = min(some, key=self.judge)
        self._trees = {best: self._trees[best]}
        return best

    def passes_and_beam(
        self, settings: Settings, passes: tuple[int, ...], beams: tuple[int, ...]
    ) -> tuple[float, int, int, float]:
        """Return how often rows are to be learned, and how many paths they take when predicted.

        First comes the loss, last the temperature of the paths.
        """
        self.judge(settings)
        model, done = self._trees.pop(settings), PASSES[0]
        best: tuple[float, int, int, float] | None = None
        for n_passes in passes:
            self._learn(model, done, n_passes)
            done = n_passes
            loss, beam, temperature = min(
                (self._loss(model, beam, temperature), beam, temperature)
                for beam in beams
                for temperature in (TEMPERATURES if beam > 1 else (1.0,))
            )
            self._note(settings, n_passes, beam, temperature, loss)
            if best is not None and loss >= best[0]:
                break
            best = loss, n_passes, beam, temperature
        assert best is not None
        return best

    def _learn(self, model: RecallTreeModel, done: int, n_passes: int) -> None:
        for order in self._passes[done:n_passes]:
            model.learn(self._stream._replace(order=order), self._n_classes)

    def _loss(self, model: RecallTreeModel, beam: int, temperature: float) -> float:
        if beam == 1:
            predicted = model.predict(self._next)
        else:
            predicted = model.predict_mixed(self._next, self._counts, beam, temperature)
        return float(np.mean(predicted != self._labels))

    def _note(self, s: Settings, n_passes: int, beam: int, temperature: float, loss: float) -> None:
        self.tried.append(
            {
                "max_candidates": s.max_candidates,
                "bound_multiplier": s.multiplier,
                "path_features": s.path_features,
                "two_paths": s.two_paths,
                "learning_rate": s.regressor.rate,
                "router_learning_rate": s.router.rate,
                "n_passes": n_passes,
                "beam": beam,
                "temperature": temperature,
                "loss": loss,
            }
        )


def robust(settings: Settings, free: frozenset[str]) -> Settings:
    """Return settings with those of ``free`` that are good in most cases."""
    changes: dict[str, Any] = {}
    if "max_candidates" in free:
        changes["max_candidates"] = 64
    if "bound_multiplier" in free:
        changes["multiplier"] = 1.0
    if "path_features" in free:
        changes["path_features"] = False
    if "two_paths" in free:
        changes["two_paths"] = False
    if "learning_rate" in free:
        changes["regressor"] = settings.regressor._replace(rate=2.0)
    if "router_learning_rate" in free:
        changes["router"] = settings.router._replace(rate=1.0)
    return settings._replace(**changes)


def run(
    race: Race,
    settings: Settings,
    free: frozenset[str],
    n_passes: int | None,
    beam: int | None,
) -> Choice:
    """Return what wins a race.

    Parameters
    ----------
    race : Race
    settings : Settings
        Given ones, and :func:`robust` ones for those of ``free``.
    free : set of str
        Parameters that may change.
    n_passes, beam : int, optional
        If given, they stay.
    """
    best = settings
    if "bound_multiplier" in free:
        pure = settings._replace(multiplier=0.0)
        if "max_routers" in free:
            pure = pure._replace(max_routers=race.n_rows)
        if "router_learning_rate" in free:
            pure = with_router_rate(pure, 2.0)
        best = race.best_of([best, pure])
    second = None  # at another rate of the routers: a few passes say little about it
    if "router_learning_rate" in free:
        others = [with_router_rate(best, factor * best.router.rate) for factor in (0.5, 2.0)]
        some = sorted([best, *others], key=race.judge)
        second = some[1].router.rate
        best = race.best_of(some[:1])
    if "learning_rate" in free:
        others = [
            best._replace(regressor=best.regressor._replace(rate=factor * best.regressor.rate))
            for factor in (0.5, 2.0)
        ]
        best = race.best_of([best, *others])
    if "path_features" in free:
        best = race.best_of([best, best._replace(path_features=True)])
    if "two_paths" in free:
        best = race.best_of([best, best._replace(two_paths=True)])
    finalists = [best] if second is None else [best, with_router_rate(best, second)]
    passes = PASSES if n_passes is None else (PASSES[0],)
    beams = BEAMS if beam is None else (beam,)
    if n_passes is not None and beam is not None:
        finalists = finalists[:1]
    results = [(race.passes_and_beam(final, passes, beams), final) for final in finalists]
    (_, found, width, temperature), best = min(results, key=lambda result: result[0])
    return Choice(best, n_passes or found, width, temperature, race.tried)


def with_router_rate(settings: Settings, rate: float) -> Settings:
    """Return settings with another rate of the routers."""
    return settings._replace(router=settings.router._replace(rate=rate))
