"""Parcels: what comes out is what was packed, and tasks are done as in one process."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.execution import tasks
from thinleaf._version import __version__
from thinleaf.execution.batches import into_batches
from thinleaf.execution.parcels import n_bytes, pack, unpack, work


@pytest.mark.parametrize("n", [0, 1, 10_000])
@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize("copy", [True, False])
def test_arrays_come_out_as_they_were(n, writable, copy):
    array = np.arange(n, dtype=np.float32)
    array.flags.writeable = writable
    parcel = pack({"it": array, "matrix": np.ones((3, 5), order="F"), "word": "a"})
    found = unpack(parcel, copy=copy)
    np.testing.assert_array_equal(found["it"], array)
    assert found["it"].dtype == array.dtype
    assert found["matrix"].flags.f_contiguous
    if n:
        assert found["it"].flags.writeable
    assert n_bytes(parcel) >= array.nbytes
    if n == 10_000:
        assert np.shares_memory(found["it"], array) is not copy


def test_changes_are_applied_in_their_order():
    base = {0: "a", 1: "b"}
    parcels = [pack(base), *(pack((tasks.with_changes, c)) for c in ({1: "c"}, {1: "d"}))]
    batch = pack((tasks.looked_up, [0, 1]))
    assert unpack(work(__version__, [3], batch, *parcels)).results == ["a", "d"]


def test_a_failure_has_type_message_and_traceback():
    outcome = unpack(work(__version__, [], pack((tasks.fails_at_two, [1, 2]))))
    assert outcome.results == []
    with pytest.raises(ArithmeticError) as caught:
        outcome.failure.raise_here("a worker")
    assert str(caught.value) == "two"
    assert caught.value.__notes__[0].startswith("in a task on a worker:\nTraceback")


def test_functions_of_no_module_need_another_pickle():
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pack(lambda: 0)


@given(costs=st.lists(st.floats(0.0, 1e6), min_size=1, max_size=60), n_workers=st.integers(1, 8))
def test_batches_hold_each_item_once_the_costly_ones_first(costs, n_workers):
    batches = into_batches(len(costs), costs, n_workers)
    assert sorted(i for batch in batches for i in batch) == list(range(len(costs)))
    first = [costs[batch[0]] for batch in batches]
    assert first == sorted(first, reverse=True)
    enough = sum(costs) / (4 * n_workers)
    for batch in batches:  # none goes on once it is enough
        assert sum(costs[i] for i in batch[:-1]) <= enough + 1e-9
    if sum(costs) > 0.0:
        assert sum(sum(costs[i] for i in b) > 0.0 for b in batches) <= 4 * n_workers + 1


def test_equal_items_are_spread_evenly():
    assert [len(batch) for batch in into_batches(80, None, 2)] == [10] * 8
