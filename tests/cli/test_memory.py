"""``train --memory``: the same file where rows fit, a good model where they do not."""

from __future__ import annotations

import json

import numpy as np
import pytest

import thinleaf
from tests.cli.test_cli import done, wrong
from tests.estimators.test_large_fits import texts, write_libsvm
from thinleaf.estimators._base import large_fits

OPTIONS = ["--model", "st", "--depth", "3", "--max-sweeps", "2", "--jobs", "1", "--quiet", "--json"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_libsvm(tmp_path_factory.mktemp("data") / "train.svm", *texts())


def test_a_file_that_fits_gives_the_same_model(data, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    done("train", data, "-o", one, *OPTIONS)
    done("train", data, "-o", other, "--memory", "100G", *OPTIONS)
    X, _ = texts(seed=1)
    assert np.array_equal(
        thinleaf.load(one).predict_proba(X), thinleaf.load(other).predict_proba(X)
    )


def test_a_larger_one_is_trained_on_part_by_part(data, tmp_path, monkeypatch):
    monkeypatch.setattr(large_fits, "room_in", lambda limit, executor: 36_000)
    monkeypatch.setattr(large_fits, "_SAID_ROWS", 1000)
    model = tmp_path / "model"
    said = [option for option in OPTIONS if option != "--quiet"]
    run = done("train", data, "-o", model, "--memory", "1M", *said)
    result = json.loads(run.stdout)
    assert result["parts"] >= 3
    n_parts = result["parts"]
    for line in (
        "reading, 1,200 rows so far",
        "1,200 rows of 24 classes take",
        "train the first router",
        f"{n_parts} parts of 1,200 rows, and ",
        f"part {n_parts}/{n_parts}  train error",
    ):
        assert line in run.stderr
    assert result["rows"] == 1200
    report = json.loads(done("evaluate", model, data, "--json", "--quiet").stdout)
    assert report["error"] < 0.1


def test_texts_are_refused(tmp_path):
    (tmp_path / "d.tsv").write_text("a\tone\nb\ttwo\n")
    said = wrong("train", tmp_path / "d.tsv", "-o", tmp_path / "m", "--memory", "4G", *OPTIONS)
    assert "--memory is for rows of features" in said


def test_errors_speak_of_options(tmp_path):
    file, model = tmp_path / "d.svm", tmp_path / "m"
    lines = [f"{i % 3} {1 + i % 3}:1\n" for i in range(2100)]
    file.write_text("".join([*lines, "1 0:1\n"]))
    for more in ([], ["--memory", "4G"]):
        said = wrong("train", file, "-o", model, *more, *OPTIONS)
        assert ":2101: index 0 is below 1: features are counted from 1, or from 0 with" in said
        assert " --zero-based; " in said
    done("train", file, "-o", model, "--zero-based", *OPTIONS)
    file.write_text("".join(lines))
    said = wrong("train", file, "-o", model, "--n-features", "2", *OPTIONS)
    assert "give a larger --n-features" in said
    assert "unknown_features" not in said
    said = wrong("train", file, "-o", model, "--memory", "100M", *OPTIONS)
    assert "--memory is 100 MiB" in said
    done("train", file, "-o", model, "--one-based", *OPTIONS)
    file.write_text("1 0:1\n")
    said = wrong("predict", model, file)
    assert "features are counted from 1, as those that the model was trained on" in said
