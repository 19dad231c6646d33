"""Executors: whatever runs the items, the results are those of a list comprehension."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from thinleaf.execution import SerialExecutor, ThreadedExecutor, executor_for

N_JOBS = (None, 1, 2, 3, -1)


@pytest.mark.parametrize("n_jobs", N_JOBS)
@given(items=st.lists(st.integers(-100, 100)), with_costs=st.booleans())
def test_map_is_a_list_comprehension(n_jobs, items, with_costs):
    costs = [float(abs(item)) for item in items] if with_costs else None
    with executor_for(n_jobs) as executor:
        assert executor.map(lambda item: 3 * item, items, costs) == [3 * item for item in items]


@pytest.mark.parametrize("n_jobs", N_JOBS)
def test_errors_come_through(n_jobs):
    def fail(item: int) -> int:
        if item == 2:
            raise ArithmeticError("two")
        return item

    with executor_for(n_jobs) as executor, pytest.raises(ArithmeticError, match="two"):
        executor.map(fail, [1, 2, 3])


def test_costly_items_start_first():
    started = []
    with executor_for(2) as executor:
        gate = threading.Barrier(2, timeout=30)

        def note(item: int) -> int:
            started.append(item)
            if item >= 30:  # both workers hold one before either goes on
                gate.wait()
            return item

        executor.map(note, [10, 40, 20, 30], [10.0, 40.0, 20.0, 30.0])
    assert set(started[:2]) == {40, 30}


def test_threads_are_many():
    with executor_for(2) as executor:
        gate = threading.Barrier(2, timeout=30)  # passes only if two items run at once
        names = executor.map(lambda _: (gate.wait(), threading.get_ident())[1], [0, 1])
    assert len(set(names)) == 2


@pytest.mark.parametrize(
    ("n_jobs", "n_workers"),
    [(None, 1), (1, 1), (2, 2), (5, 5), (-1, os.cpu_count()), (-1000, 1)],
)
def test_n_jobs_means_what_it_means_in_scikit_learn(n_jobs, n_workers):
    with executor_for(n_jobs) as executor:
        assert executor.n_workers == n_workers
        assert isinstance(executor, SerialExecutor if n_workers == 1 else ThreadedExecutor)


def test_no_jobs_are_rejected():
    with pytest.raises(ValueError, match="n_jobs"), executor_for(0):
        pass


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_linear_algebra_runs_on_one_thread_inside(n_jobs):
    np.ones((2, 2)) @ np.ones((2, 2))

    def n_threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(2, "blas"):  # also where there is one core, or one thread by default
        before = n_threads()
        assert 2 in before
        with executor_for(n_jobs):
            assert all(n == 1 for n in n_threads())
        assert n_threads() == before
