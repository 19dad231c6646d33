"""How settings are found: which are tried, and which win, by losses that the test gives."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from thinleaf.online.linear_models import Learning
from thinleaf.online.recall_race import BEAMS, PASSES, robust, run
from thinleaf.online.recall_tree import Settings

FREE = frozenset(
    (
        "max_candidates", "max_routers", "bound_multiplier", "path_features", "two_paths",
        "learning_rate", "router_learning_rate",
    )
)  # fmt: skip

GIVEN = Settings(
    20, 0, 7, 0.3, True, True, True, True, 0.0, Learning(0, 0.1, False), Learning(0, 0.2, True)
)


class Judges:
    """A race whose losses are known."""

    def __init__(self, loss: Callable[[Settings], float]) -> None:
        self.loss, self.seen, self.tried, self.n_rows = loss, [], [], 5000

    def judge(self, settings: Settings) -> float:
        self.seen.append(settings)
        return self.loss(settings)

    def best_of(self, some: list[Settings]) -> Settings:
        return min(some, key=self.judge)

    def passes_and_beam(self, settings, passes, beams):
        self.passes, self.beams = passes, beams
        return self.loss(settings), passes[-1], beams[-1], 2.0


def test_robust_settings_change_what_is_free_alone():
    assert robust(GIVEN, frozenset()) == GIVEN
    found = robust(GIVEN, FREE)
    assert found.max_candidates == 64
    assert (found.max_depth, found.max_routers, found.half_life) == (20, 0, 0.0)
    assert robust(GIVEN, frozenset(["learning_rate"])).router == GIVEN.router


def test_what_is_given_is_not_tried():
    race = Judges(lambda settings: 0.5)
    choice = run(race, GIVEN, frozenset(), 3, 2)
    assert (choice.settings, choice.n_passes, choice.beam) == (GIVEN, 3, 2)
    assert race.seen == []
    assert race.beams == (2,)


def test_the_lowest_loss_wins():
    def loss(settings: Settings) -> float:
        wanted = settings.multiplier == 0.0, settings.router.rate == 4.0, settings.path_features
        return 1.0 - 0.1 * sum(wanted) + 0.05 * settings.two_paths

    race = Judges(loss)
    choice = run(race, robust(GIVEN, FREE), FREE, None, None)
    assert choice.settings.multiplier == 0.0
    assert choice.settings.max_routers == 5000
    assert choice.settings.router.rate == 4.0
    assert choice.settings.path_features
    assert not choice.settings.two_paths
    assert (race.passes, race.beams) == (PASSES, BEAMS)
    assert choice.temperature == pytest.approx(2.0)


def test_of_equal_losses_the_robust_settings_win():
    start = robust(GIVEN, FREE)
    assert run(Judges(lambda settings: 0.5), start, FREE, None, None).settings == start
