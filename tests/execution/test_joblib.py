"""joblib: what is coarse runs in other processes, with the bits of one thread."""

from __future__ import annotations

import os

import joblib
import numpy as np
import pytest

from tests.estimator_cases import adaptive, assert_same_tree, problem, quick
from tests.execution import tasks
from thinleaf import SoftmaxForestClassifier
from thinleaf.execution import Joblib, Shared, executor_for


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_expansions_and_trees_are_those_of_one_thread(backend):
    X, y = problem(3, n_rows=300)
    one = adaptive().fit(X, y)
    far = adaptive(executor=Joblib(backend), n_jobs=2).fit(X, y)
    assert_same_tree(far.tree_, one.tree_)
    forest = SoftmaxForestClassifier(quick(), 3, random_state=0)
    expected = forest.fit(X, y).predict_proba(X)
    found = forest.set_params(executor=Joblib(backend), n_jobs=2).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(found, expected)


def test_only_coarse_work_leaves_the_process():
    shared = [Shared(np.ones(200_000))]  # large enough to go by file
    items = [np.arange(3), np.arange(2000)]
    with executor_for(2, "joblib") as executor:
        near = executor.map(tasks.is_writable, items, shared=shared)
        far = executor.map(tasks.is_writable, items, shared=shared, coarse=True)
    assert {pid for *_, pid in near} == {os.getpid()}
    assert os.getpid() not in {pid for *_, pid in far}
    assert all(first and second for first, second, _ in far)


def test_errors_come_back_and_time_ends():
    with executor_for(2, "joblib") as executor:
        with pytest.raises(ArithmeticError) as caught:
            executor.map(tasks.fails_at_two, [1, 2, 3], coarse=True)
        assert str(caught.value) == "two"
        assert "in fails_at_two" in caught.value.__notes__[0]
        assert executor.map(tasks.triple, [1, 2], coarse=True, stop=lambda: True) == [None, None]


def test_the_number_of_workers_is_joblibs():
    for n_jobs, expected in ((None, 1), (3, 3)):
        with executor_for(n_jobs, "joblib") as executor:
            assert executor.n_workers == expected
    with joblib.parallel_config(n_jobs=2), executor_for(None, "joblib") as executor:
        assert executor.n_workers == 2
    with pytest.raises(ValueError, match="n_jobs"), executor_for(0, "joblib"):
        pass
