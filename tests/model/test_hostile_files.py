"""Hostile model files: each gets a ModelFileError, and nothing else happens."""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from tests.attacks.corpus import (
    ATTACKS,
    TABLE_ATTACKS,
    TEXT_ATTACKS,
    TRAINING_ATTACKS,
    Attack,
)
from tests.attacks.parts import Parts
from tests.data.models.make import HERE, table_for
from tests.estimator_cases import quick
from tests.frozen_cases import answers, backoff_of, both, frozen, labels_of, rich_forest, rich_model
from tests.strategies import random_tree
from thinleaf import FrozenTree, ModelFileError, load, load_estimator
from thinleaf._dtypes import PARAM
from thinleaf.model.file_parts import Section
from thinleaf.softmaxtree.growth.prune import prune
from thinleaf.text.features import TextFeatures
from thinleaf.text.recipe import Recipe

GOOD = ("dense", "sparse", "halves", "forest", "trained", "flags")
TEXTS = [
    "the quick brown fox", "jumps over the lazy dog", "a lazy brown dog", "the quick dog jumps",
    "over a fox", "brown dog over the fox",
]  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Good files; beams of all leaves, so that probabilities need all of them."""
    directory = tmp_path_factory.mktemp("good")
    names = [f"feature {i}" for i in range(30)]
    features = TextFeatures(min_df=1, ngram_range=(1, 2)).fit(TEXTS)
    X = features.transform(20 * TEXTS)
    rng = np.random.default_rng(0)
    X.data += rng.normal(scale=0.3, size=X.nnz).astype(PARAM)
    y = np.array(["a", "b", "c", "d", "e", "f"])[np.arange(X.shape[0]) % 6]
    y[rng.random(y.size) < 0.3] = "b"
    clf = quick(depth=2, leaf_classes=2).fit(X, y)
    trained = directory / "clf"
    clf.save(trained, trainable=True)
    models = {
        "dense": rich_model(3, weights="int8", labels=labels_of("float"), feature_names=names),
        "sparse": rich_model(3, sparse=True, labels=labels_of("str"), feature_names=names),
        "halves": rich_model(3, weights="float16", labels=labels_of("int")),
        "forest": rich_forest((3, 4), sparse=True).with_beam(2, temperature=2.0),
        "trained": load(trained).with_sections(text=Section(*features.to_arrays())),
    }
    two, _ = prune(random_tree(rng, 6, 30, 2, pure=0.0))
    models["flags"] = frozen(two, backoff=backoff_of(two), labels=labels_of("bool"))
    for name, model in models.items():
        model.with_beam(1024).save(directory / name)
    return {name: directory / name for name in GOOD}


def use(path: Path) -> FrozenTree:
    """Open a file and use all of it."""
    model = load(path)
    rows = np.ones((2, model.n_features), dtype=PARAM)
    for X in both(rows):
        answers(model, X)
    model.predict_one(rows[0])
    model.predict_one(np.array([0]), np.array([1.0]))
    return model


def refused(
    make: Attack, source: Path, target: Path, use: Callable[[Path], object], error: type[Exception]
) -> bytes | None:
    """Check that a file is refused at once, without warnings, in memory of its own scale.

    Returns what was refused, or None if the file has nothing to attack in this way.
    """
    content = make(Parts.read(source))
    if content is None:
        return None
    target.write_bytes(content)
    tracemalloc.start()
    began = time.process_time()  # not of what runs beside it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(error) as caught:
                use(target)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert type(caught.value) is error
    assert 10 < len(str(caught.value)) < 2000
    assert time.process_time() - began < 20.0
    assert peak < 2**22 + 60 * len(content)
    return content


@pytest.mark.parametrize("kind", GOOD)
def test_the_files_that_attacks_are_made_from_are_good(good, kind, tmp_path):
    use(good[kind]).check()
    again = tmp_path / "again"
    again.write_bytes(bytes(Parts.read(good[kind])))
    assert use(again).labels.tolist() == load(good[kind]).labels.tolist()
    if kind == "trained":
        load_estimator(again).predict(sp.csr_array((1, load(again).n_features), dtype=PARAM))
        section = load(again).sections["text"]
        assert TextFeatures.from_arrays(section.arrays, section.metadata).n_features > 10


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_on_models(good, tmp_path, name):
    done: list[bytes | None] = [None]
    for kind in GOOD:
        if ATTACKS[name](Parts.read(good[kind])) not in done:
            done.append(refused(ATTACKS[name], good[kind], tmp_path / "bad", use, ModelFileError))
    assert len(done) > 1


@pytest.mark.parametrize("name", TRAINING_ATTACKS)
def test_attacks_on_estimators(good, tmp_path, name):
    attack = TRAINING_ATTACKS[name]
    assert refused(attack, good["trained"], tmp_path / "bad", load_estimator, ModelFileError)


def read_text(path: Path) -> TextFeatures:
    section = load(path).sections["text"]
    return TextFeatures.from_arrays(section.arrays, section.metadata)


def read_recipe(path: Path) -> Recipe:
    model = load(path)
    return Recipe.of(model.sections, model.n_features)


@pytest.mark.parametrize("name", TEXT_ATTACKS)
def test_attacks_on_text_features(good, tmp_path, name):
    """Their reader says what is wrong as a ValueError; the command line reads a whole recipe."""
    read_recipe(good["trained"])
    assert refused(
        TEXT_ATTACKS[name], good["trained"], tmp_path / "bad", read_recipe, ModelFileError
    )
    assert refused(TEXT_ATTACKS[name], good["trained"], tmp_path / "bad", read_text, ValueError)


def use_columns(path: Path) -> None:
    """Use all that the sections of a model of columns are for."""
    model = load(path)
    recipe = Recipe.of_model(model)
    table = table_for(model)
    model.predict(table)
    model.rejects(table, 0.5)
    assert recipe.layout is not None


@pytest.mark.parametrize("name", TABLE_ATTACKS)
def test_attacks_on_models_of_columns(tmp_path, name):
    source = HERE / "columns.safetensors"
    use_columns(source)
    bad = tmp_path / "bad"
    assert refused(TABLE_ATTACKS[name], source, bad, use_columns, ModelFileError)
