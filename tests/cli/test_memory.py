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
    monkeypatch.setattr(large_fits, "room_in", lambda limit, executor: 60_000)
    model = tmp_path / "model"
    result = json.loads(done("train", data, "-o", model, "--memory", "1M", *OPTIONS).stdout)
    assert result["parts"] >= 3
    assert result["rows"] == 1200
    report = json.loads(done("evaluate", model, data, "--json", "--quiet").stdout)
    assert report["error"] < 0.1


def test_texts_are_refused(tmp_path):
    (tmp_path / "d.tsv").write_text("a\tone\nb\ttwo\n")
    said = wrong("train", tmp_path / "d.tsv", "-o", tmp_path / "m", "--memory", "4G", *OPTIONS)
    assert "--memory is for rows of features" in said
