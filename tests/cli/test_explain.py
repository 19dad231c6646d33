"""``thinleaf explain`` says what Python says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.cli.test_cli import done, wrong
from thinleaf import SoftmaxTreeClassifier, TextClassifier, load

TEXTS = ["a broken arm", "a broken leg", "high fever", "yellow fever"] * 6
LABELS = ["arm", "leg", "fever", "yellow"] * 6


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    tree = SoftmaxTreeClassifier(depth=1, max_sweeps=1, random_state=0)
    TextClassifier(tree, "words", rejection=False).fit(TEXTS, LABELS).save(folder / "texts")
    X = np.eye(4, 6)[np.arange(24) % 4] + 0.01 * np.arange(24)[:, None]
    tree.fit(X, np.arange(24) % 4).save(folder / "rows")
    return folder


def test_a_text(models):
    path, text = str(models / "texts"), "a broken leg & <b>"
    found = json.loads(
        done("explain", path, text, "--against", "fever", "--json", "--top", "2").stdout
    )
    e = load(path).explain(text, against="fever", top=2)
    assert found == json.loads(json.dumps(e.to_dict(2)))
    shown = done("explain", path, text, "--beam", "2").stdout
    assert shown == str(load(path).with_beam(2).explain(text)) + "\n"


@pytest.mark.parametrize("row", ["1 0 0 0 0 0", "[1, 0, 0, 0, 0, 0]", "1,0,0,0,0,0", "1:1"])
def test_a_row(models, row):
    path = str(models / "rows")
    found = json.loads(done("explain", path, row, "--json", "--against", "2").stdout)
    x = np.eye(6, dtype=np.float32)[0]
    assert found["label"] == load(path).predict_one(x)
    assert found["against"]["answer"]["label"] == 2


def test_lines_of_standard_input(models):
    run = done("explain", str(models / "texts"), "--json", stdin="high fever\n\na broken arm\n")
    labels = [json.loads(line)["label"] for line in run.stdout.splitlines()]
    assert labels == ["fever", "arm"]


def test_what_is_wrong(models):
    path = str(models / "rows")
    assert "3 numbers" in wrong("explain", path, "1 2 3")
    assert "no class 'x'" in wrong("explain", path, "1 2 3 4 5 6", "--against", "x")
    assert "No such file" in wrong("explain", path + "?", "1")
