"""Models derived without training, what their files weigh, and which of them are on the front."""

from __future__ import annotations

import numpy as np
import pytest

from tests.estimator_cases import formats, problem, quick
from thinleaf import SoftmaxForestClassifier
from thinleaf.model.front import Frontier, Point
from thinleaf.model.variant import Variant


def forest(kind="dense"):
    X, y = problem(0, kind=kind, n_classes=6, n_rows=200)
    labels = np.array([f"é{i}" for i in range(6)])[y]
    clf = SoftmaxForestClassifier(quick(), n_estimators=3, random_state=0).fit(X, labels)
    return clf.freeze(), X, labels


VARIANTS = [
    Variant(3),
    Variant(1),
    Variant(2, 4, 2.0),
    Variant(3, 1, 1.0, "int8"),
    Variant(2, 2, 1.0, "float16", 0.1),
    Variant(1, 1, 1.0, "int8", 0.3),
]


@formats
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.words)
def test_the_bytes_of_a_file_are_known_before_it_is_written(kind, variant, tmp_path):
    model = variant.of(forest(kind)[0]).with_summary(note='ü"\n')
    model.save(tmp_path / "model")
    assert model.file_bytes == (tmp_path / "model").stat().st_size


@formats
def test_variants_are_the_models_that_they_say(kind):
    model, X, y = forest(kind)
    found = Variant(2, 4, 2.0, "int8", 0.05).of(model)
    assert (found.n_trees, found.beam, found.temperature) == (2, 4, 2.0)
    assert found.packed.weights == "int8"
    assert Variant(3).of(model) is model
    assert np.mean(found.predict(X) == y) > 0.6


def test_what_is_dropped_is_small():
    model, X, _ = forest("csr")
    thin = model.thinned(0.2)
    kept, before = np.abs(thin.packed.entry), np.abs(model.packed.entry)
    assert thin.packed.entry.size <= before.size
    if kept.size:
        assert kept.max() == before.max()
    assert model.thinned(0.0).packed.entry.size == before.size
    thin.predict(X)
    with pytest.raises(ValueError, match="share must be in"):
        model.thinned(1.0)
    with pytest.raises(ValueError, match="start from float32"):
        model.quantized("int8").thinned(0.1)


def point(error: float, us: float, n_bytes: int, **options) -> Point:
    given = {"source": "tree", "variant": Variant(beam=int(us) + 1)} | options
    return Point(error=error, us=us, bytes=n_bytes, fit_seconds=1.0, all_rows=True, **given)


def test_the_front_has_what_nothing_beats():
    good, fast, small, bad = (
        point(0.1, 9.0, 900), point(0.2, 1.0, 800), point(0.3, 5.0, 100), point(0.3, 6.0, 900)
    )  # fmt: skip
    frontier = Frontier((bad, small, fast, good), good, "top5_error")
    assert list(frontier) == [good, fast, small, bad]
    assert frontier.front() == [good, fast, small]
    assert len(frontier) == 4
    assert frontier[0] == good
    assert [row["chosen"] for row in frontier.table()] == [True, False, False]
    assert "top5_error" in str(frontier)
    assert str(frontier).count("\n") == 3
    assert frontier.drawn()[fast.name] == (1.0, 0.2)


def test_budgets_choose_from_the_front():
    good, fast, small = point(0.1, 9.0, 900), point(0.2, 1.0, 800), point(0.3, 5.0, 100)
    frontier = Frontier((good, fast, small))
    assert frontier.within()[0] == good
    assert frontier.within(max_us=9.0, slack=1.1) == [fast, small]
    assert frontier.within(max_us=9.0, max_bytes=200) == [small]
    assert frontier.within(max_us=0.5) == []
    assert frontier.nearest(0.5, None) == fast
    assert frontier.nearest(None, 50) == small
    assert frontier.nearest(1.0, 50) == small or frontier.nearest(1.0, 50) == fast
