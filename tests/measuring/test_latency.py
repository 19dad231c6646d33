"""The clock: what is called how often, and that latencies are those of the calls. No timings."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from tests.estimator_cases import formats, problem, quick
from thinleaf.measuring.deployed import Measurement, rows_for
from thinleaf.measuring.latency import (
    N_BATCHES,
    N_PASSES,
    N_SINGLE,
    Stopwatch,
    batch_latency,
    best_of,
    model_latencies,
    prepared_rows,
    repeated,
    single_latency,
)
from thinleaf.model import latency


class Clock:
    """A clock that stands still until a call lets time pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(latency, "time", clock)
    return clock


def lasting(clock, *seconds):
    """Return a call that takes so long: each of the times in turn, the last one for good."""
    times = list(seconds)

    def call(*arguments):
        clock.now += times.pop(0) if len(times) > 1 else times[0]

    return call


def test_a_stopwatch_adds_up_its_runs(clock):
    watch = Stopwatch()
    assert math.isnan(watch.median)
    for seconds in (1.0, 5.0, 2.0):
        with watch:
            clock.now += seconds
    assert (watch.seconds, watch.median) == (8.0, 2.0)


def test_a_stopwatch_stops_at_an_error(clock):
    watch = Stopwatch()
    with pytest.raises(KeyError), watch:
        raise KeyError
    assert watch.runs == [0.0]


def test_repeated_calls_end_after_some_seconds(clock):
    assert repeated(4, lasting(clock, 3.0, 1.0)).tolist() == [3.0, 1.0, 1.0, 1.0]
    assert repeated(4, lasting(clock, 3.0, 1.0), most_seconds=3.5).tolist() == [3.0, 1.0]
    assert repeated(4, lasting(clock, 3.0), most_seconds=0.0).tolist() == [3.0]
    assert best_of(3, lasting(clock, 3.0, 1.0, 2.0)) == 1.0


def test_a_single_latency_is_the_median_of_passes(clock):
    n_warm, rows = 2, [("a",), ("b",)]
    first = [9.0] * n_warm + [0.1, 0.3]  # warm calls do not count; two are timed alone
    passes = [0.1, 0.1] * 3 + [0.2, 0.2] * (N_PASSES - 3)
    found = single_latency(lasting(clock, *(1e-3 * s for s in first + passes)), rows)
    assert found.median == pytest.approx(200.0)
    assert found.best == pytest.approx(100.0)
    assert 100.0 < found.p99 <= 300.0


def test_what_else_the_machine_does_in_some_passes_does_not_count(clock):
    n_warm, a_pass = 50, [1e-6] * 100
    busy = [1e-6] * n_warm + a_pass + [0.01, *a_pass[1:]] * 3  # a slow call in three passes
    found = single_latency(lasting(clock, *busy, 1e-6), [(i,) for i in range(100)])
    assert found.median == pytest.approx(1.0)


def test_slow_calls_are_made_twice_only(clock):
    calls = []
    slow = lasting(clock, 10.0)

    def one(row):
        calls.append(row)
        slow()

    found = single_latency(one, [("a",), ("b",)])
    assert calls == ["a", "b"] * 2
    assert found.median == found.best == found.p99 == pytest.approx(10e6)


def test_a_batch_latency_is_that_of_a_row(clock):
    found = batch_latency(lasting(clock, 0.3, 0.1, 0.2), 10, n_times=3)
    assert (found.median, found.best) == (pytest.approx(2e4), pytest.approx(1e4))
    slow = batch_latency(lasting(clock, 9.0, 1.0), 10)
    assert slow.median == slow.best == pytest.approx(9e5)


@formats
def test_prepared_rows_are_what_predict_one_takes(kind):
    X, y = problem(kind=kind)
    model = quick().fit(X, y).freeze()
    samples = prepared_rows(X, 20)
    assert len(samples) == 20
    singles = [model.predict_one(*sample) for sample in samples]
    np.testing.assert_array_equal(singles, model.predict(X)[:20])
    for part in samples[0]:
        assert not np.shares_memory(part, X.data if sp.issparse(X) else X)


def test_no_more_rows_than_there_are_and_than_are_needed(clock):
    class Model:
        n_single = n_batches = 0

        def predict_one(self, row):
            self.n_single += 1

        def predict(self, X):
            self.n_batches += 1

    for n_rows in (3, N_SINGLE + 5):
        model = Model()
        model_latencies(model, np.zeros((n_rows, 2), np.float32))
        n = min(n_rows, N_SINGLE)
        assert model.n_single == min(n, 50) + n * (1 + N_PASSES)
        assert model.n_batches == N_BATCHES


@formats
def test_errors_of_deployed_models_count_unknown_labels(kind):
    X, y = problem(kind=kind)
    model = quick().fit(X, y).freeze()
    rows = rows_for(model, [sp.csr_matrix(X[:40]), sp.csr_matrix(X[40:])])
    assert sp.issparse(rows) == (kind == "csr")
    ids = np.searchsorted(model.labels, y).astype(np.int32)
    error = np.mean(model.predict(X) != y)
    assert Measurement(rows, ids, 1, 1).error(model) == pytest.approx(error)
    found = Measurement(rows, np.full_like(ids, -1), 1, 1)(model)
    assert found["error"] == 1.0
    assert set(found["single_us"]) == set(found["batch_us"]) == {"median", "best", "p99"}
