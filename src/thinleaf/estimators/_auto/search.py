"""Few models trained, many derived from them, each judged and timed; then one is chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from thinleaf.estimators._auto.contenders import Contender, Trainer
from thinleaf.estimators._auto.deadline import Deadline
from thinleaf.estimators._auto.judge import Deployment, Judge, Score
from thinleaf.estimators._auto.raw_texts import Form, derived, n_trees_of
from thinleaf.labeltree.frozen import FrozenLabelTree
from thinleaf.model.front import Frontier, Point
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.variant import Variant

SLACK = 1.08
"""Measured microseconds count as this many times more, because other processes will differ."""

_SURE = 0.5
"""Standard errors by which a model must have fewer errors than the default one to replace it."""

_USUAL_BEAM = 4
_TEMPERATURES = (0.5, 1.0, 2.0, 4.0)
_WIDE_BEAMS = (8, 16)
_TOO_SLOW = 1.5
_SLOW = 4.0
"""Microseconds of a tree above which deeper ones are tried, if the time is limited anyway."""

_DROPPED = (0.02, 0.05, 0.1)
_MUCH_DROPPED = (0.2, 0.4, 0.6)
_MOST_SHRUNK = 4
_WORTH = 0.99
"""More trees go on while they bring errors below this share of what fewer ones had."""

FEWER_ROWS = 0.92
"""Share of the errors that the held-out rows, a sixth more, leave, about."""

_TRYING = 0.5
"""Share of the time after the default tree in which others are tried; the rest is for the last fit,
which has more rows."""

_RESERVE = 0.08
"""Share of the time that is kept for measuring."""

_WEIGHTS = ("float32", "float16", "int8")
DEFAULT = ("tree", Variant())


class BudgetError(ValueError):
    """No model that could be had keeps the budget."""


@dataclass(frozen=True)
class Budget:
    """What a model may cost.

    Attributes
    ----------
    max_us : float or None
    max_bytes : float or None
        Of the file, less what others add to it.
    added : int
        Bytes that they add.
    """

    max_us: float | None
    max_bytes: float | None
    added: int = 0

    def kept(self, us: float, n_bytes: float, slack: float = SLACK) -> bool:
        """Return whether a model keeps it."""
        return (self.max_us is None or slack * us <= self.max_us) and (
            self.max_bytes is None or n_bytes <= self.max_bytes
        )


class Search:
    """What is known so far of all models.

    Parameters
    ----------
    trainer : Trainer
    judge : Judge
    deployment : Deployment
    budget : Budget
    max_trees : int
    repeat : mapping, optional
        What an earlier fit was decided by.
    say : callable
        Takes lines of progress.
    """

    def __init__(
        self,
        trainer: Trainer,
        judge: Judge,
        deployment: Deployment,
        budget: Budget,
        max_trees: int,
        repeat: Mapping[str, Any] | None,
        say: Callable[[str], None],
    ) -> None:
        self.trainer, self._judge, self._deployment = trainer, judge, deployment
        self._budget, self._max_trees, self._repeat, self._say = budget, max_trees, repeat, say
        self.contenders: dict[str, Contender] = {}
        self.scores: dict[tuple[str, Variant], Score] = {}
        self.points: dict[tuple[str, Variant], Point] = {}
        self.left_out: list[str] = []
        self.interrupted = False
        self.cut_short = False
        self._growth = 1.0
        self._clock = trainer.clock

    # -- training ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Train, derive and measure until there is nothing left to try, or no time."""
        try:
            tree, self.cut_short = self.trainer.tree()
        except KeyboardInterrupt:
            if not hasattr(self.trainer, "_tree"):
                raise
            tree, self.interrupted = self.trainer.first, True
        form = tree.final_form
        assert form is not None
        self._growth = self._deployment.n_bytes(form) / self._deployment.n_bytes(tree.form)
        self._enter(tree, 1)
        if self.interrupted or self.cut_short or not self.trainer.honest:
            return
        deadline = Deadline(_TRYING * self._clock.left)
        try:
            with deadline:
                self._go_on()
        except KeyboardInterrupt:
            self.interrupted = not deadline.fired
            self.left_out.append("what was being tried when time was up")
            forest = self.trainer.forest_so_far()
            if forest is not None and not self.interrupted:
                self._enter(forest, forest.n_trees, widen=False)

    def _go_on(self) -> None:
        tree = self.contenders["tree"]
        if self._repeat is None:
            names = [found.source for found in self.trainer.rounds()]
            others = self.trainer.others(fast=self._faster_may_be_asked_for())
            us = self.points[DEFAULT].us
            short = not self._budget.kept(us, 0)
            good = self.trainer.promising(others, self._error_at_first, short=short)
            self.left_out += [
                f"{name}: no better on a quarter of the rows, too large, or too slow to train"
                for name in others
                if name not in good
            ]
            names += good
        else:
            names = [name for name in self._repeat["sources"] if name not in ("tree", "forest")]
        for name in names:
            self._enter(self.trainer.of_name(name), 1)
        if self._repeat is not None:
            if "forest" in self._repeat["sources"]:
                self._enter(self.trainer.forest(int(self._repeat["n_trees"])), None)
            return
        self._grow_forest(tree)

    def _error_at_first(self, form: Form) -> float:
        """Return the error of a model of some rows; infinite if even that is too large a file."""
        limit = self._budget.max_bytes
        of_words = limit is not None and isinstance(form, FrozenLabelTree)
        if of_words and not self._budget.kept(0.0, self._deployment.n_bytes(form)):
            return math.inf
        return self._judge(form).value

    def _faster_may_be_asked_for(self) -> bool:
        """Return whether the default tree is slow, beside the budget or beside one path at best."""
        limit = math.inf if self._budget.max_us is None else self._budget.max_us / 2
        if math.isfinite(self._clock.limit):  # there may be other budgets
            limit = min(limit, _SLOW)
        return self.points[DEFAULT].us * SLACK > limit

    def _grow_forest(self, tree: Contender) -> None:
        """Add trees while they help, and the budget and the time allow it."""
        n_trees, best = 2, self._least("tree")
        while n_trees <= self._max_trees:
            if not self._room_for(n_trees):
                self.left_out.append(f"forests of {n_trees} trees: over the budget")
                return
            seconds = self.trainer.known_wave_seconds()
            needed = self.trainer.waves(n_trees // 2) + 1.2 * self.trainer.waves(n_trees - 1)
            if seconds * needed > 0.8 * self._clock.left:
                self.left_out.append(f"forests of {n_trees} trees: no time")
                return
            forest = self.trainer.forest(n_trees)
            self._enter(forest, n_trees)
            if n_trees > 2:
                self._enter(forest, 3 * n_trees // 4, widen=False)
            least = self._least("forest")
            if n_trees > 2 and least > _WORTH * best:
                self.left_out.append(f"forests of more than {n_trees} trees: no better")
                return
            best, n_trees = min(best, least), 2 * n_trees

    def _room_for(self, n_trees: int) -> bool:
        """Return whether the smallest forest of so many trees may keep the budget."""
        trees = [p for (source, _), p in self.points.items() if source == "tree"]
        us = min(p.us for p in trees) * (1 + 0.6 * (n_trees - 1))
        small: FrozenTree = self.trainer.first.judged._frozen_form().quantized("int8")
        base = self._deployment.n_bytes(small)
        empty = base - small.nbytes
        return self._budget.kept(us, empty + (base - empty) * n_trees * 0.8, 1.0)

    def _least(self, source: str) -> float:
        return min(p.error for (of, _), p in self.points.items() if of == source)

    # -- deriving ----------------------------------------------------------------------------------

    def _enter(self, contender: Contender, n_trees: int | None, widen: bool = True) -> None:
        """Measure a model, and what can be made of it without training."""
        known, form = self.contenders.get(contender.source), contender.form
        if known is None or known.n_trees <= contender.n_trees:
            self.contenders[contender.source] = contender
        sizes = [n_trees] if n_trees is not None else sorted({2, 3, 4, 6, 8, contender.n_trees})
        for size in sizes:
            if size is None or size > contender.n_trees:
                continue
            base = self._point(contender, Variant(n_trees=size))
            branching = not isinstance(form, FrozenLabelTree) and form.n_leaves > form.n_trees
            if branching and not self._too_slow(base) and not self._late():
                self._beams(contender, size, widen)
        if not isinstance(form, FrozenLabelTree):
            self._shrink(contender, form)
        least = self._least(contender.source)
        self._say(f"{contender.source}: {least:.4f} after {self._clock.elapsed:.1f} s")

    def _beams(self, contender: Contender, n_trees: int, widen: bool) -> None:
        def at(beam: int, temperature: float) -> Variant:
            return Variant(n_trees, beam, temperature)

        def value(variant: Variant) -> float:
            return self._score(contender, variant).value

        usual = min(
            (at(_USUAL_BEAM, t) for t in _TEMPERATURES),
            key=lambda v: (value(v), abs(math.log(v.temperature))),
        )
        self._point(contender, at(2, usual.temperature))
        last = self._point(contender, usual)
        for beam in _WIDE_BEAMS if widen else ():
            if self._too_slow(last) or self._late():
                return
            hotter = [at(beam, t) for t in (usual.temperature, 2 * usual.temperature)]
            best = min(hotter, key=lambda v: (value(v), v.temperature))
            found = self._point(contender, best)
            if found.error >= last.error:
                return
            last = found

    def _shrink(self, contender: Contender, form: FrozenTree) -> None:
        """Measure smaller and fewer weights of the best so far."""
        source = contender.source
        own = [p for (of, v), p in self.points.items() if of == source and v.weights == "float32"]
        front = [p for p in own if not any(_simpler(other, p) for other in own)]
        rows = form.packed.entry.size > 0
        for p in sorted(front, key=lambda p: (p.error, p.bytes))[:_MOST_SHRUNK]:
            if self._late():
                self._fit_in(contender)
                return
            self._point(contender, replace(p.variant, weights="float16"))
            small = self._point(contender, replace(p.variant, weights="int8"))
            for dropped in _DROPPED if rows else ():
                self._point(contender, replace(small.variant, dropped=dropped))
        limit = self._budget.max_bytes
        if limit is None or not rows or any(p.bytes <= limit for p in self.points.values()):
            return
        for dropped in _MUCH_DROPPED:
            self._point(contender, Variant(weights="int8", dropped=dropped))

    def _fit_in(self, contender: Contender) -> None:
        """Measure the first model of smaller and fewer weights that has the bytes of the budget.

        For when time is up, and no model that is known keeps them.
        """
        limit = self._budget.max_bytes
        if limit is None or any(p.bytes <= limit for p in self.points.values()):
            return
        small = Variant(weights="int8")
        dropped = [replace(small, dropped=share) for share in (*_DROPPED, *_MUCH_DROPPED)]
        for variant in (Variant(weights="float16"), small, *dropped):
            if self._n_bytes(contender, variant) <= limit:
                self._point(contender, variant)
                return

    def _too_slow(self, point: Point) -> bool:
        limit = self._budget.max_us
        return limit is not None and point.us > _TOO_SLOW * limit

    def _late(self) -> bool:
        return self._clock.left < _RESERVE / 2 * self._clock.limit

    # -- measuring ---------------------------------------------------------------------------------

    def _score(self, contender: Contender, variant: Variant) -> Score:
        key = (contender.source, variant)
        if key not in self.scores:
            self.scores[key] = self._judge(derived(variant, contender.form))
        return self.scores[key]

    def _point(self, contender: Contender, variant: Variant) -> Point:
        key = (contender.source, variant)
        if key in self.points:
            return self.points[key]
        score = self._score(contender, variant)
        final = contender.final_form
        us = self._deployment.us(derived(variant, contender.form if final is None else final))
        self.points[key] = Point(
            contender.source, variant, score.value, us, self._n_bytes(contender, variant),
            contender.fit_seconds, final is not None,
        )  # fmt: skip
        return self.points[key]

    def _n_bytes(self, contender: Contender, variant: Variant) -> int:
        """Return the bytes of a file, or what to expect of one of all rows."""
        final = contender.final_form
        if final is not None:
            return self._deployment.n_bytes(derived(variant, final))
        n_bytes = self._deployment.n_bytes(derived(variant, contender.form))
        return round(n_bytes * max(self._growth, 1.0))

    # -- choosing ----------------------------------------------------------------------------------

    def choose(self) -> tuple[Point, Any]:
        """Return the chosen model and the estimator that it is made of, fitted to all rows if so.

        What was found not to keep the budget once it was there is left out.
        """
        over: set[tuple[str, Variant]] = set()
        for _ in range(len(self.points)):
            point = self._best(over)
            contender = self.contenders[point.source]
            estimator = self._finished(contender, point)
            if estimator is None:
                if not self._worth_fewer_rows(point, over | {(point.source, point.variant)}):
                    over.add((point.source, point.variant))
                    continue
                estimator = self.judged(contender)
            form = derived(point.variant, estimator._frozen_form())
            us = self._deployment.us(form, careful=True)
            point = replace(
                point,
                us=us,
                bytes=self._deployment.n_bytes(form),
                fit_seconds=self._clock.elapsed,
                all_rows=estimator is contender.final,
            )
            key = (point.source, point.variant)
            self.points[key] = point
            if self._repeat is not None or self._budget.kept(us, point.bytes):
                return point, estimator
            over.add(key)
            self._say(f"{point.name}: {us:.3g} µs and {point.bytes:,} bytes are over the budget")
        raise self._nothing()

    def _finished(self, contender: Contender, point: Point) -> Any:
        """Return a model of all rows, or None if there is no time for it."""
        if contender.has_all_rows(point.variant.n_trees):
            return contender.final
        n_trees = point.variant.n_trees
        if self._repeat is not None:
            if int(self._repeat["refitted"]) > 0:
                contender.final = contender.build(int(self._repeat["refitted"]))
            return contender.final if contender.has_all_rows(n_trees) else None
        # of a forest, some trees are better than none
        if self.interrupted or contender.refit_seconds >= self._clock.left:
            return None
        self._say(f"{point.name}: fitting to all rows")
        deadline = Deadline((1 - _RESERVE / 4) * self._clock.left)
        try:
            with deadline:
                contender.final = contender.build(n_trees)
        except KeyboardInterrupt:
            self.interrupted = not deadline.fired
            if contender.source == "forest":
                contender.final = self.trainer.done()
            return None
        return contender.final if contender.has_all_rows(n_trees) else None

    def judged(self, contender: Contender) -> Any:
        """Return what there is of a model that is not fitted to all rows."""
        if contender.source != "forest":
            return contender.judged
        n_last = None if self._repeat is None else int(self._repeat["refitted"])
        return self.trainer.mixed(contender.n_trees, n_last)

    def _worth_fewer_rows(self, point: Point, over: set[tuple[str, Variant]]) -> bool:
        """Return whether a model is better than any that has all rows and keeps the budget."""
        if self._repeat is not None:
            return True
        return not any(
            FEWER_ROWS * p.error <= point.error
            for key, p in self.points.items()
            if key not in over
            and self.contenders[p.source].has_all_rows(p.variant.n_trees)
            and self._budget.kept(p.us, p.bytes)
        )

    def _best(self, over: set[tuple[str, Variant]]) -> Point:
        if self._repeat is not None:
            chosen = dict(self._repeat["chosen"])
            key = (chosen.pop("source"), Variant(**chosen))
            if key not in self.points:
                self._point(self.contenders[key[0]], key[1])
            return self.points[key]
        kept = [
            p
            for key, p in self.points.items()
            if key not in over and self._budget.kept(p.us, p.bytes)
        ]
        if not kept:
            raise self._nothing()
        return preferred(kept, self.sure(), lambda p: p.error)

    def sure(self) -> set[tuple[str, Variant]]:
        """Return the models with fewer errors than the default one, noise apart."""
        standing = self.scores[DEFAULT]
        return {
            key for key in self.points if self._judge.surely_less(self.scores[key], standing, _SURE)
        }

    def complete(self) -> None:
        """Fit the models of the front to all rows, as far as time goes: for other budgets."""
        if math.isinf(self._clock.limit) or self._repeat is not None or not self.trainer.honest:
            return
        largest: dict[str, Point] = {}
        for p in sorted(Frontier(tuple(self.points.values())).front(), key=_n_trees):
            largest[p.source] = p

        def seconds(p: Point) -> float:
            waves = self.trainer.waves(p.variant.n_trees - 1)
            return waves * self.contenders[p.source].refit_seconds

        for p in sorted(largest.values(), key=seconds):
            if not self.interrupted and not self._late():
                self._finished(self.contenders[p.source], p)

    def measured(self) -> tuple[Point, ...]:
        """Return all models as they are now: which have all rows, and what these take."""
        return tuple(self._now(p) for p in self.points.values())

    def _now(self, p: Point) -> Point:
        contender = self.contenders[p.source]
        form = contender.final_form
        if p.all_rows or form is None or not contender.has_all_rows(p.variant.n_trees):
            return p
        n_bytes = self._deployment.n_bytes(derived(p.variant, form))
        return replace(p, bytes=n_bytes, all_rows=True)

    def _nothing(self) -> BudgetError:
        near = Frontier(tuple(self.points.values())).nearest(
            self._budget.max_us, self._budget.max_bytes
        )
        limits, asked = [], []
        if self._budget.max_us is not None:
            limits.append(f"{self._budget.max_us:g} µs")
            asked.append(f"max_us={_up(SLACK * SLACK * near.us)}")
        if self._budget.max_bytes is not None:
            limits.append(f"{self._budget.max_bytes + self._budget.added:,.0f} bytes")
            asked.append(f"max_bytes={near.bytes + self._budget.added}")
        n_bytes = near.bytes + self._budget.added
        return BudgetError(
            f"no model keeps {' and '.join(limits)}. The nearest is {near.name}: "
            f"{near.us:.3g} µs, {n_bytes:,} bytes and an error of {near.error:.4f} on held-out "
            f"rows. To have it, ask for {' and '.join(asked)}"
        )

    def decided(self, chosen: Point) -> dict[str, Any]:
        """Return what a fit needs to come to the same model without a clock."""
        forest = self.contenders.get("forest")
        return {
            "sources": list(self.contenders),
            "n_trees": 1 if forest is None else forest.n_trees,
            "chosen": {"source": chosen.source} | asdict(chosen.variant),
            "refitted": self._n_refitted(chosen),
        }

    def _n_refitted(self, chosen: Point) -> int:
        """Return how many trees of the chosen model are fitted to all rows."""
        form = self.contenders[chosen.source].final_form
        if form is None:
            return int(chosen.source == "forest")
        return min(n_trees_of(form), chosen.variant.n_trees)


def preferred(
    kept: Sequence[Point], sure: Collection[tuple[str, Variant]], error: Callable[[Point], float]
) -> Point:
    """Return the best of some models, unless the default one is as good, noise apart.

    Parameters
    ----------
    kept : sequence of Point
        At least one.
    sure : collection of (source, Variant)
        Those that are surely better than the default one.
    error : callable
        What counts as the error of a model.
    """

    def key_of(p: Point) -> Any:
        v, small = p.variant, _WEIGHTS.index(p.variant.weights)
        is_default = (p.source, v) == DEFAULT
        return (error(p), not is_default, v.n_trees * v.beam, v.dropped, small, p.bytes, p.name)

    ordered = sorted(kept, key=key_of)
    default = next((p for p in ordered if (p.source, p.variant) == DEFAULT), None)
    if default is None:
        return ordered[0]
    return next(
        p
        for p in ordered
        if p == default
        or ((p.source, p.variant) in sure and error(p) < error(default))
        or (error(p) <= error(default) and not _costs_more(p, default))
    )


def _costs_more(p: Point, default: Point) -> bool:
    """Return whether a model is larger or takes more paths: what does not depend on a clock."""
    return p.bytes >= default.bytes or p.variant.n_trees * p.variant.beam > 1


def expected(p: Point) -> float:
    """Return the error to expect of a model as it is there, with all rows or without some."""
    return FEWER_ROWS * p.error if p.all_rows else p.error


def _n_trees(p: Point) -> int:
    return p.variant.n_trees


def _simpler(p: Point, other: Point) -> bool:
    """Return whether a model beats another one, told by paths instead of a clock."""
    paths = p.variant.n_trees * p.variant.beam, other.variant.n_trees * other.variant.beam
    mine, theirs = (p.error, paths[0], p.bytes), (other.error, paths[1], other.bytes)
    return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))


def _up(us: float) -> float:
    """Return microseconds rounded up to two digits."""
    unit = 10.0 ** (math.floor(math.log10(us)) - 1)
    return round(math.ceil(us / unit) * unit, 6)
