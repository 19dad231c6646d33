"""Parts of online learners: the flow of an update, hash tables, linear models, progress."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from tests import online_reference as reference
from tests.strategies import FORMATS, as_rows, integer_rows
from thinleaf._dtypes import ACCUM, INDEX
from thinleaf.arrays.rows import n_rows_of
from thinleaf.online import importance as flow
from thinleaf.online.linear_models import Learning
from thinleaf.online.one_vs_all import OneVsAllModel
from thinleaf.online.progressive import ProgressiveLoss
from thinleaf.online.scaled_rows import Stream
from thinleaf.online.tables import (
    COUNT,
    EMPTY,
    USED,
    clear,
    enlarged,
    find,
    find_or_insert,
    new_tables,
    room_for,
)

losses = pytest.mark.parametrize("loss", list(flow.LOSSES))
predictions = st.floats(-30, 30)
times = st.floats(0, 1e4)

# -- flow ------------------------------------------------------------------------------------------


@losses
@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize("start", [-3.0, -0.2, 0.0, 2.5])
def test_flow_is_the_limit_of_small_gradient_steps(loss, label, start):
    kind = flow.LOSSES[loss]
    solution = solve_ivp(
        lambda _, p: [-reference.slope(loss, p[0], label)],
        (0.0, 5.0),
        [start],
        rtol=1e-10,
        atol=1e-10,
    )
    assert flow.flow(kind, start, label, 5.0) == pytest.approx(solution.y[0, -1], abs=1e-6)
    assert flow.slope(kind, start, label) == pytest.approx(reference.slope(loss, start, label))


@losses
@given(p=predictions, a=times, b=times)
def test_two_updates_equal_one_of_both_importances(loss, p, a, b):
    kind = flow.LOSSES[loss]
    halfway = flow.flow(kind, p, 1.0, a)
    whole = flow.flow(kind, p, 1.0, a + b)
    assert flow.flow(kind, halfway, 1.0, b) == pytest.approx(whole, rel=1e-7, abs=1e-7)


@losses
@given(p=predictions, time=times)
def test_no_update_goes_astray(loss, p, time):
    after = flow.flow(flow.LOSSES[loss], p, 1.0, time)
    assert math.isfinite(after)
    assert after >= p if loss == "logistic" else abs(after - 1.0) <= abs(p - 1.0)


@given(margin=st.floats(-700, 700), time=st.floats(0, 1e300))
def test_the_logistic_flow_solves_its_equation(margin, time):
    z = flow.logistic_flow(margin, time)
    assert margin <= z < math.inf
    if margin < 30 and time < 1e6:
        assert z + math.exp(z) == pytest.approx(margin + math.exp(margin) + time, rel=1e-6)


# -- tables ----------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 40), st.booleans()), min_size=1, max_size=300
    )
)
def test_tables_are_dictionaries(operations):
    tables = new_tables(4, 2, ACCUM)
    twins: list[dict[int, float]] = [{} for _ in range(4)]
    for step, (owner, key, clears) in enumerate(operations):
        if clears and key == 0:
            clear(tables, owner)
            twins[owner] = {}
            continue
        needed = int(tables.heads[USED]) + room_for(tables, owner, 1)
        tables = enlarged(tables, 4, needed)
        at = find_or_insert(tables, owner, key)
        assert tables.values[at, 0] == twins[owner].get(key, 0.0)
        tables.values[at] = step + 1, -1
        twins[owner][key] = step + 1
    for owner, twin in enumerate(twins):
        assert tables.owners[owner, COUNT] == len(twin)
        for key in range(41):
            at = find(tables, owner, key)
            assert (at == EMPTY) == (key not in twin)
            if at != EMPTY:
                assert tables.values[at, 0] == twin[key]


def test_memory_of_tables_is_linear_in_their_keys():
    tables = new_tables(50, 1, ACCUM)
    n_keys = 0
    for key in range(200):
        for owner in range(50):
            tables = enlarged(tables, 50, int(tables.heads[USED]) + room_for(tables, owner, 1))
            find_or_insert(tables, owner, key)
            n_keys += 1
    assert tables.heads[USED] <= 8 * n_keys  # at least a quarter full, and as much again is free


# -- linear models ---------------------------------------------------------------------------------


def stream_of(X, y, weights=None) -> Stream:
    n_rows = n_rows_of(X)
    weights = np.ones(n_rows) if weights is None else weights
    return Stream(X, np.asarray(y, INDEX), weights, np.arange(n_rows, dtype=INDEX))


@losses
@pytest.mark.parametrize("kind", FORMATS)
def test_models_equal_their_twin(kind, loss):
    rng = np.random.default_rng(0)
    X, y = integer_rows(rng, 150, 11), rng.integers(0, 4, 150)
    weights = rng.integers(1, 4, 150).astype(float)
    model = OneVsAllModel(11, Learning(flow.LOSSES[loss], 0.7, False), dense=kind == "dense")
    twin = reference.OneVsAll(loss=loss, learning_rate=0.7)
    predicted = model.learn(stream_of(as_rows(X, kind), y, weights), 4)
    expected = [twin.learn(X[i].astype(float), int(y[i]), weights[i]) for i in range(150)]
    assert predicted.tolist() == [EMPTY if label is None else label for label in expected]
    scores = [[r.score(twin.scales.scaled(x.astype(float))) for r in twin.regressors] for x in X]
    np.testing.assert_allclose(model.shortlists(as_rows(X, kind))[1], scores, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", FORMATS)
def test_units_of_features_do_not_matter(kind):
    rng = np.random.default_rng(1)
    X, y = integer_rows(rng, 80, 6), rng.integers(0, 3, 80)
    units = 2.0 ** rng.integers(-9, 10, 6)
    models = []
    for scale in (1.0, units):
        model = OneVsAllModel(6, Learning(flow.LOGISTIC, 0.5, False), dense=kind == "dense")
        rows = as_rows(X * scale, kind)
        model.learn(stream_of(rows, y), 3)
        models.append(model.shortlists(rows)[1])
    np.testing.assert_array_equal(models[0], models[1])


@losses
def test_an_importance_of_two_is_nearly_two_examples(loss):
    rng = np.random.default_rng(2)
    X, y = integer_rows(rng, 60, 5), rng.integers(0, 3, 60)
    scores = []
    for repeat in (1, 2):
        model = OneVsAllModel(5, Learning(flow.LOSSES[loss], 0.05, False), dense=True)
        weights = np.full(60 * repeat, 2.0 / repeat)
        rows = as_rows(np.repeat(X, repeat, axis=0), "dense")
        model.learn(stream_of(rows, np.repeat(y, repeat), weights), 3)
        scores.append(model.shortlists(as_rows(X, "dense"))[1])
    assert np.abs(scores[0] - scores[1]).max() < 0.15 * np.abs(scores[0]).max()


# -- progressive validation ------------------------------------------------------------------------


def test_progress_is_recorded_at_powers_of_two():
    rng = np.random.default_rng(3)
    labels, predicted = rng.integers(0, 3, (2, 100)).astype(INDEX)
    progress, done = ProgressiveLoss(), 0
    while done < 100:
        n = min(progress.n_until_record, 7, 100 - done)
        progress.add(predicted[done : done + n], labels[done : done + n])
        done += n
    assert [record.examples for record in progress.records] == [1, 2, 4, 8, 16, 32, 64]
    for record in progress.records:
        n = record.examples
        assert record.loss == np.mean(predicted[:n] != labels[:n])
        assert record.loss_since_last == np.mean(predicted[n // 2 : n] != labels[n // 2 : n])
    again = ProgressiveLoss.from_array(progress.as_array())
    assert again.records == progress.records
    assert (again.n_examples, again.n_mistakes) == (100, np.count_nonzero(predicted != labels))
    assert again.n_until_record == 28
