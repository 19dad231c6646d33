"""What ``benchmarks.adapts`` says of a model, and how the peers beside it are tuned."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import _report, adapts
from benchmarks._data import load
from benchmarks._tuned import Contender, inner, search
from thinleaf import SoftmaxTreeClassifier
from thinleaf.measuring import Split


def blobs(n_rows: int = 400, n_classes: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_rows)
    centres = 3.0 * rng.normal(size=(n_classes, 5))
    return (centres[y] + rng.normal(size=(n_rows, 5))).astype(np.float32), y


def test_the_calibration_error_of_confidence_that_is_kept_is_zero():
    confidence = np.repeat([0.5, 1.0], 10)
    correct = np.concatenate([np.arange(10) < 5, np.ones(10)])
    assert adapts.calibration_error(confidence, correct) == pytest.approx(0.0)
    assert adapts.calibration_error(confidence, 0 * correct) == pytest.approx(0.75)


def test_outside_mass_is_that_of_classes_that_leaves_lack():
    X, y = blobs()
    split = Split.of(X, y, X[:100], np.where(np.arange(100) < 50, y[:100], 99))
    tree = SoftmaxTreeClassifier(depth=2, leaf_classes=2, random_state=0).fit(X, split.y_train)
    expected, observed = adapts.outside_mass(tree.freeze(), split)
    held = tree.freeze().label_proba(X[:50], split.y_test[:50], smooth=False) > 0.0
    assert observed == pytest.approx(1.0 - held.sum() / 100)
    leaf = tree.freeze().predict_proba_sparse(X[:100])
    assert expected == pytest.approx(1.0 - leaf.sum(axis=1).mean())
    flat = SoftmaxTreeClassifier(depth=0, leaf_classes=8, random_state=0).fit(X, split.y_train)
    assert adapts.outside_mass(flat.freeze(), split) == pytest.approx((0.0, 0.5))


@pytest.mark.parametrize(("best", "n_steps"), [(1.0, 3), (9.0, 5), (1e-9, 6)])
def test_a_ladder_grows_while_its_end_is_the_best(best, n_steps):
    ladder = Contender("", dict, ("C",), others=({"more": 1.0},))
    found = search(ladder, lambda s: abs(np.log(s.get("C", 1.0) / best)) + s.get("more", 0.0))
    assert found.tried[0][0] == {}
    assert len(found.tried) == n_steps + 1
    assert found.tried[-1][0] == found.best | {"more": 1.0}
    assert found.best.get("C", 1.0) == pytest.approx(max(best, 3.0**-4), rel=0.01)


def test_without_a_grid_nothing_is_tried():
    assert search(Contender("", dict), lambda settings: 1 / 0).best == {}


def test_rows_of_a_grid_are_training_rows():
    X, y = blobs()
    split = Split.of(X, y, np.full((3, 5), 99.0), y[:3])
    part = inner(split, every=2)
    assert part.X_test.shape[0] == 80
    assert part.X_train.shape[0] == 160
    both = np.vstack([part.X_train, part.X_test])
    assert both.max() < 99.0
    assert np.unique(both, axis=0).shape[0] == 240


def test_embeddings_are_left_as_they_are(tmp_path):
    X, y = blobs()
    for name in ("some", "some_minilm"):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / name, X_train=X, y_train=y, X_test=X, y_test=y)
    assert np.array_equal(load(tmp_path, "some_minilm").X_train, X)
    assert load(tmp_path, "some").X_train.std(axis=0) == pytest.approx(1.0, abs=1e-4)


def test_fits_that_a_result_has_are_not_made_again(tmp_path, monkeypatch, capsys):
    X, y = blobs()
    (tmp_path / "letter").mkdir()
    np.savez(tmp_path / "letter" / "letter", X_train=X, y_train=y, X_test=X[:99], y_test=y[:99])
    for module in (_report, adapts):
        monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    fits = []
    ours = adapts.ours

    def counted(split, seed, forest):
        fits.append(seed)
        return ours(split, seed, forest)

    monkeypatch.setattr(adapts, "ours", counted)
    arguments = ["adapts", "--data", f"{tmp_path}/", "--sets", "letter", "--seeds", "0"]
    monkeypatch.setattr(sys, "argv", [*arguments, "--held-out", "--ours-only"])
    adapts.main()
    assert not Path(tmp_path / "results").exists()
    monkeypatch.setattr(sys, "argv", arguments)
    adapts.main()
    monkeypatch.setattr(sys, "argv", [*arguments, "1"])
    adapts.main()
    assert fits == [0, 0, 1]
    means, each = _report.read("adapts_letter").tables
    assert means.headers == adapts.SUMMARY
    assert means.rows[0][:2] == ["AST, one path", 2]
    systems = [row[0] for row in each.rows]
    assert systems[0] == systems[2] == "AST, one path"
    assert {"scikit-learn tree", "1-nearest neighbour", "LinearSVC"} <= set(systems)
    assert "letter: AST, one path, seed 1" in capsys.readouterr().out
