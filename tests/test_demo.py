"""The demo's data and a small run of all that it prints."""

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from thinleaf.datasets import TextSplit, load_icd10cm
from thinleaf.demo import FIGURE, draw, first_rows, make_rows, run


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


def test_rows_are_float32_and_come_from_the_training_part(data):
    part = first_rows(data, 500)
    rows = make_rows(part)
    split = rows.split
    assert split.X_train.dtype == np.float32
    assert split.X_test.shape == (len(part.texts_test), split.X_train.shape[1])
    assert split.known.all()
    assert [rows.categories[c] for c in split.y_test] == part.y_test
    counts = np.diff(split.X_train.tocsc().indptr)
    assert counts.min() >= 2


# -- a small run -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_run():
    out, said = io.StringIO(), []
    outcome = run(Console(file=out, width=100), n_rows=1_500, say=said.append)
    return outcome, out.getvalue(), said


def test_the_models_and_what_is_measured_of_each(small_run):
    figures = small_run[0].figures
    assert list(figures) == ["tree", "tree, beam 4", "forest of 4 trees", "flat softmax"]
    for one in figures.values():
        assert 0.0 < one.top_k_error <= one.error < 0.6
        assert min(one.single_us, one.batch_us, one.bytes, one.train_seconds) > 0
    assert small_run[0].row_us > 0.0


def test_a_beam_is_another_way_to_deploy_the_same_tree(small_run):
    tree, beam = (small_run[0].figures[name] for name in ("tree", "tree, beam 4"))
    assert (beam.bytes, beam.train_seconds) == (tree.bytes, tree.train_seconds)
    assert beam.perplexity != tree.perplexity


def test_the_deployed_tree_is_the_one_in_the_table(data, small_run):
    split = make_rows(first_rows(data, 1_500)).split
    outcome = small_run[0]
    error = np.mean(outcome.tree.predict(split.X_test) != split.y_test)
    assert error == outcome.figures["tree"].error
    assert outcome.tree.nbytes == outcome.figures["tree"].bytes


def test_table_and_examples_are_printed_and_progress_is_said(small_run):
    _, text, said = small_run
    for expected in ("top-5", "µs a", "MB", "training", "row of a raw text", "AdaGrad"):
        assert expected in " ".join(text.split())
    for name, one in small_run[0].figures.items():
        (line,) = (line for line in text.splitlines() if line.startswith(f"│ {name} "))
        assert f" {100 * one.error:.1f} % " in line
        assert f" {100 * one.top_k_error:.1f} % " in line
    assert text.count("\n  right ") + text.count("\n  missed ") == 8
    assert said[1].startswith("1,500 training")
    for name in small_run[0].figures:
        assert f"{name}: measuring" in said


# -- the picture -----------------------------------------------------------------------------------


@pytest.fixture
def figures(small_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return small_run[0].figures


def test_the_picture_names_every_model_and_is_drawn_anew(figures):
    for _ in range(2):
        assert draw(figures) == f"Error against latency is drawn in {FIGURE}"
    assert FIGURE.read_text(encoding="utf-8").count("<g id=") > 10


@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_what_the_demo_has_not_made_is_left_alone(figures, there):
    other = Path("other.svg")
    other.write_text("mine", encoding="utf-8")
    if there == "file":
        other.rename(FIGURE)
    elif there == "folder":
        FIGURE.mkdir()
    else:
        FIGURE.symlink_to(other)
    assert "not the demo's" in draw(figures)
    if there != "folder":
        assert FIGURE.read_text(encoding="utf-8") == "mine"


def test_a_picture_goes_where_it_is_told(figures, tmp_path):
    path = tmp_path / "mine.png"
    path.write_bytes(b"old")
    assert str(path) in draw(figures, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert not FIGURE.exists()
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(OSError, match="is a directory"):
        draw(figures, tmp_path / "folder.svg")


def test_without_matplotlib_there_is_a_word(figures, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    for name in ("axes", "frontier"):
        monkeypatch.delitem(sys.modules, f"thinleaf.explain.{name}", raising=False)
    assert "thinleaf[plot]" in draw(figures)
    assert not FIGURE.exists()
