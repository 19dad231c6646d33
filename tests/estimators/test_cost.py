"""What a fit will cost: told by probes. Timings themselves are in ``benchmarks``."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.estimator_cases import formats, problem, quick
from thinleaf import (
    AdaptiveSoftmaxTreeClassifier,
    AutoTreeClassifier,
    TextClassifier,
    estimate_cost,
)
from thinleaf.estimators import cost
from thinleaf.estimators.cost import Probe


@formats
def test_it_tells_seconds_memory_and_bytes(kind):
    X, y = problem(kind=kind, n_rows=900)
    found = estimate_cost(X, y, quick(), probe_seconds=0.05)
    assert found.n_rows == 900
    assert found.seconds > 0.0
    assert found.model_bytes > 0
    assert found.peak_bytes is None or found.peak_bytes > 0
    assert found.probes[0].n_rows == 500
    assert "900 rows" in str(found)


def test_probes_grow_until_time_is_up(monkeypatch):
    X, y = problem(n_rows=20_000, n_classes=3)
    asked, limits = [], []

    def probe(model, X, y, weight, some, base, limit):
        limits.append(limit)
        asked.append(some.size)
        return Probe(int(some.size), some.size / 1000, 10**8 + 100 * int(some.size), 2 * some.size)

    monkeypatch.setattr(cost, "_probe", probe)
    found = estimate_cost(X, y, quick(), probe_seconds=9.0)
    assert asked == [500, 1500, 4500]
    assert limits == [np.inf, 17.5, 16.0]
    assert found.seconds == pytest.approx(20.0)
    assert found.peak_bytes == 10**8 + 100 * 20_000
    assert found.model_bytes == pytest.approx(40_000, rel=1e-3)


def test_a_probe_that_goes_on_is_ended(monkeypatch):
    fit = AdaptiveSoftmaxTreeClassifier.fit

    def long(self, X, y, *args):
        if len(y) > 500:
            threading.Event().wait(60.0)
        return fit(self, X, y, *args)

    monkeypatch.setattr(AdaptiveSoftmaxTreeClassifier, "fit", long)
    model = AdaptiveSoftmaxTreeClassifier(max_rounds=0, random_state=0)
    found = estimate_cost(*problem(n_rows=900), model, probe_seconds=1.0)
    assert [p.n_rows for p in found.probes] == [500]


def test_ctrl_c_ends_the_probes():
    class Interrupted(AdaptiveSoftmaxTreeClassifier):
        @property
        def ended_(self):
            return "interrupted"

        @ended_.setter
        def ended_(self, _):
            pass

    with pytest.raises(KeyboardInterrupt):
        estimate_cost(*problem(n_rows=600), Interrupted(max_rounds=0, random_state=0))


def test_budgets_bound_the_seconds_and_not_the_probes():
    X, y = problem(n_rows=600)
    model = AutoTreeClassifier(max_us=1e-9, max_fit_seconds=0.001, max_trees=1, random_state=0)
    assert estimate_cost(X, y, model, probe_seconds=0.1).seconds == 0.001


def test_only_a_fit_to_a_budget_is_told_by_several_times_its_default_tree():
    for model in (
        AutoTreeClassifier(),
        TextClassifier("auto"),
        TextClassifier(AutoTreeClassifier()),
    ):
        assert cost._is_auto(model)
    for model in (quick(), TextClassifier(), TextClassifier(quick())):
        assert not cost._is_auto(model)


def test_bad_input_is_told():
    X, y = problem(n_rows=60)
    for rows, labels in ((X, y[:-1]), (X, y[:, None]), (X[:0], y[:0])):
        with pytest.raises(ValueError, match="one label a sample"):
            estimate_cost(rows, labels, quick())
    with pytest.raises(ValueError, match="probe_seconds must be above 0"):
        estimate_cost(X, y, quick(), probe_seconds=0)


@pytest.mark.parametrize("n_rounds", [1, 4])
def test_seconds_of_a_round_grow_and_rounds_are_those_of_the_last_fits(n_rounds):
    probes = [Probe(n, n / 100 * n_rounds, None, None, n_rounds) for n in (100, 200, 400)]
    assert cost._seconds(probes, 1600, True, True) == pytest.approx(16.0 * n_rounds)
    assert cost._seconds(probes, 400, True, True) == probes[-1].seconds
    sparse = cost._seconds(probes, 1600, False, True)
    assert 4.0 * n_rounds < sparse < 16.0 * n_rounds


def test_texts_can_be_probed():
    X = [f"word{i % 7} word{i % 3} word{i % 11}" for i in range(600)]
    y = np.array([i % 7 for i in range(600)])
    model = TextClassifier(quick(), features="words", rejection=False, random_state=0)
    found = estimate_cost(X, y, model, probe_seconds=0.05)
    assert found.model_bytes > 0
