"""Errors by cause: the right class was not in the leaf, or it was and another one won."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.frozen_cases import both, real_rows, rich_forest, rich_model
from thinleaf.explain.errors import BeamErrors, ErrorCauses, error_causes


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("forest", [False, True])
def test_causes_are_counted(beam, forest):
    model = (rich_forest(range(2)) if forest else rich_model(1)).with_beam(beam)
    X = real_rows(5, 200, model.n_features)
    y = np.random.default_rng(0).integers(model.n_classes + 1, size=200)  # one that is unknown
    for rows in both(X):
        found = error_causes(model, rows, y, beams=(1, 2), n_confusions=3)
        assert [entry.beam for entry in found.beams] == sorted({1, 2, beam})
        assert found.own.beam == beam
        for entry in found.beams:
            wide = model.with_beam(entry.beam)
            wrong = wide.predict(X) != y
            P = wide.predict_proba_sparse(X).tocsr()
            held = np.array([
                label in P.indices[P.indptr[i] : P.indptr[i + 1]] for i, label in enumerate(y)
            ])  # fmt: skip
            known = y < model.n_classes
            assert entry.wrong == wrong.sum() == entry.by_routing + entry.in_leaf + entry.unknown
            assert entry.by_routing == (wrong & ~held & known).sum()
            assert entry.unknown == (~known).sum()
        assert len(found.confusions) == 3
        for c in found.confusions:
            assert c.n == c.by_routing + c.in_leaf
            assert c.n == ((y == c.label) & (model.predict(X) == c.predicted)).sum()
        json.dumps(found.to_dict())
        assert f"{found.n_rows:,} rows" in str(found)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([(0, 0, 0)], "no errors"),
        ([(10, 8, 2), (3, 1, 2)], "a beam of 2 has 7 errors fewer of 10: it helps"),
        ([(10, 8, 2), (10, 1, 9)], "wider beams do not help"),
        ([(10, 2, 8), (10, 0, 10)], "most are made in the leaves"),
    ],
)
def test_advice(counts, said):
    beams = tuple(BeamErrors(i + 1, *own, 0) for i, own in enumerate(counts))
    assert said in ErrorCauses(100, 1, beams, ()).advice


def test_labels_must_fit():
    with pytest.raises(ValueError, match="one label a row"):
        error_causes(rich_model(), real_rows(), [1, 2])
