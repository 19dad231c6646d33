"""The demo's data and a small run of all that it prints."""

import io
import re
import sys

import numpy as np
import pytest
from rich.console import Console

from thinleaf.datasets import TextSplit, load_icd10cm
from thinleaf.demo import first_rows, main, make_features, run


@pytest.fixture(scope="module")
def data() -> TextSplit:
    return load_icd10cm()


def word_sets(texts: list[str]) -> set[frozenset[str]]:
    return {frozenset(re.findall(r"\w+", text.lower())) for text in texts}


def test_sizes(data):
    assert (len(data.texts_train), len(data.y_train)) == (50_503, 50_503)
    assert (len(data.texts_test), len(data.y_test)) == (8_864, 8_864)
    assert len(data.titles) == 1_730


def test_both_parts_have_known_categories(data):
    assert set(data.y_train) == set(data.titles)
    assert set(data.y_test) <= set(data.titles)
    assert all(len(category) == 3 for category in data.titles)


def test_parts_share_no_set_of_words(data):
    assert not word_sets(data.texts_train) & word_sets(data.texts_test)


def test_texts_are_one_clean_line_and_occur_once_in_a_category(data):
    pairs = list(zip(data.y_train + data.y_test, data.texts_train + data.texts_test, strict=True))
    assert len(set(pairs)) == len(pairs)
    assert all(text and text == " ".join(text.split()) for _, text in pairs)


def test_loading_repeats_itself(data):
    assert load_icd10cm() == data


def test_known_rows(data):
    train = dict(zip(data.texts_train, data.y_train, strict=True))
    test = dict(zip(data.texts_test, data.y_test, strict=True))
    assert train["Burn of third degree of right scapular region"] == "T22"
    assert test["Acute chemical conjunctivitis"] == "H10"
    assert data.titles["H10"] == "Conjunctivitis"


def test_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "simple_icd_10_cm", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install 'thinleaf[demo]'")):
        load_icd10cm()
    with pytest.raises(SystemExit, match=re.escape("pip install 'thinleaf[demo]'")):
        main()


def test_features_are_float32_and_come_from_the_training_part(data):
    part = first_rows(data, 500)
    features = make_features(part)
    assert features.X_train.dtype == np.float32
    assert features.X_test.shape == (len(part.texts_test), features.X_train.shape[1])
    assert set(features.y_test) <= set(features.y_train)
    counts = np.diff(features.X_train.tocsc().indptr)
    assert counts.min() >= 2


def test_small_run_prints_table_and_examples(capsys):
    out = io.StringIO()
    comparison = run(Console(file=out, width=100), n_rows=1_500)
    for figures in (comparison.tree_figures, comparison.flat_figures):
        assert 0.0 < figures.top5_error <= figures.error < 0.6
        assert figures.batch_us > 0.0
        assert figures.single_us > 0.0
        assert figures.n_nonzero <= figures.n_bytes / 4
    text = out.getvalue()
    for expected in ("1,500 training", "test error", "one row a call", "model size"):
        assert expected in text
    assert "pass 8/8" in capsys.readouterr().err
    assert text.count("\n  right ") + text.count("\n  missed ") == 8
