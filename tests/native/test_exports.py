"""Models in other forms: each says the same as the model, and nothing is replaced by accident."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.data.vectors.make import EXPECTED, HERE
from tests.frozen_cases import labels_of, real_rows, rich_forest, rich_model
from tests.narrow_cases import narrow_tree
from thinleaf import ModelFileError, load
from thinleaf.cli import app
from thinleaf.native.c_array import c_array
from thinleaf.native.exporting import export
from thinleaf.native.tree_json import to_json

VECTORS = json.loads(EXPECTED.read_text("utf-8"))
ROWS = [name for name, expected in VECTORS.items() if "rows" in expected]


# -- JSON: a reader of a few lines -----------------------------------------------------------------


def softmax(scores: list[float]) -> list[float]:
    top = max(scores)
    raised = [math.exp(score - top) for score in scores]
    return [value / sum(raised) for value in raised]


def paths(form: dict[str, Any], x: list[float], root: int) -> list[tuple[dict[str, Any], float]]:
    """Return leaves and weights of one tree."""
    live = [(0.0, form["nodes"][root])]
    while any("left" in node for _, node in live):
        added = []
        for i, (log, node) in enumerate(live):
            if "left" in node:
                score = sum(
                    x[f] * w for f, w in zip(node["features"], node["weights"], strict=True)
                )
                score = (score + node["bias"]) / form["temperature"]
                if form["beam"] == 1:
                    live[i] = (0.0, form["nodes"][node["right" if score >= 0 else "left"]])
                    continue
                soft = math.log1p(math.exp(-abs(score)))
                live[i] = (log + min(score, 0.0) - soft, form["nodes"][node["right"]])
                added.append((log + min(-score, 0.0) - soft, form["nodes"][node["left"]]))
        live = sorted(live + added, key=lambda path: -path[0])[: form["beam"]]
    weights = softmax([log for log, _ in live])
    return [(leaf, weight) for (_, leaf), weight in zip(live, weights, strict=True)]


def probabilities(form: dict[str, Any], x: list[float]) -> list[float]:
    p = [0.0] * len(form["labels"])
    for root in form["roots"]:
        for leaf, weight in paths(form, x, root):
            weight /= len(form["roots"])
            scores = list(leaf["bias"])
            for f, row in zip(leaf["features"], leaf["weights"], strict=True):
                scores = [s + x[f] * w for s, w in zip(scores, row, strict=True)]
            for c, prior in enumerate(form["prior"]):
                p[c] += weight * leaf["outside"] * prior
            for c, value in zip(leaf["extra_classes"], leaf["extra"], strict=True):
                p[c] += weight * leaf["outside"] * value
            for c, q in zip(leaf["classes"], softmax(scores), strict=True):
                p[c] += weight * (leaf["inside"] * q - leaf["outside"] * form["prior"][c])
    return p


def label_probabilities(form: dict[str, Any], x: list[float]) -> list[float]:
    dim, n_nodes = len(form["embeddings"][0]), len(form["children"])
    r = [
        form["scale"] * sum(v * u[t] for v, u in zip(x, form["embeddings"], strict=True))
        for t in range(dim)
    ]
    reach, p = {0: 1.0}, [0.0] * len(form["labels"])
    for node, children in enumerate(form["children"]):
        rows = zip(form["weights"][node], form["bias"][node], strict=True)
        scores = [b + sum(w * v for w, v in zip(row, r, strict=True)) for row, b in rows]
        for child, q in zip(
            children, softmax(scores if len(scores) > 1 else [0.0, *scores]), strict=True
        ):
            if child >= n_nodes:
                p[child - n_nodes] = reach[node] * q
            elif child >= 0:
                reach[child] = reach[node] * q
    return p


@pytest.mark.parametrize("name", ROWS)
def test_a_reader_of_the_json_form(name):
    model = load(HERE / f"{name}.thinleaf")
    form = json.loads(to_json(model))
    assert form["labels"] == model.labels.tolist()
    reader = probabilities if form["kind"] == "softmax tree" else label_probabilities
    X = np.array(VECTORS[name]["rows"], dtype=np.float32)[:4]
    for x, expected in zip(X.tolist(), model.predict_proba(X), strict=True):
        np.testing.assert_allclose(reader(form, x), expected, rtol=0.0, atol=2e-6)


def test_the_json_form_of_texts():
    form = json.loads(to_json(load(HERE / "text-both.thinleaf")))
    model = load(HERE / "text-both.thinleaf")
    names = model.input.features.feature_names()
    assert form["text"]["terms"][: form["text"]["n_words"]] == names[: form["text"]["n_words"]]
    assert len(form["text"]["idf"]) == len(names)
    words = json.loads(to_json(load(HERE / "label-tree-text.thinleaf")))["words"]
    assert sorted(map(int, words["keys"])) == list(map(int, words["keys"]))


# -- ONNX ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["int", "float", "str", "object"])
@pytest.mark.parametrize("sparse", [False, True])
def test_onnx(kind, sparse):
    runtime = pytest.importorskip("onnxruntime")
    weights = {"int": "int8", "float": "float16"}.get(kind, "float32")
    model = rich_model(3, sparse=sparse, weights=weights, labels=labels_of(kind))
    X = real_rows(n_rows=60)
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    labels, p = session.run(None, {"X": X})
    assert labels.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(p, model.predict_proba(X), rtol=0.0, atol=2e-6)
    alone = runtime.InferenceSession(model.to_onnx(probabilities=False).SerializeToString())
    (labels,) = alone.run(None, {"X": X[:1]})
    assert labels.tolist() == [model.predict_one(X[0])]


@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_onnx_of_a_narrow_tree(weights):
    runtime = pytest.importorskip("onnxruntime")
    model = narrow_tree(7, weights=weights)
    X = real_rows(n_rows=60, n_features=model.n_features)
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    labels, p = session.run(None, {"X": X})
    assert labels.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(p, model.predict_proba(X), rtol=0.0, atol=5e-6)


def test_onnx_of_a_forest():
    runtime = pytest.importorskip("onnxruntime")
    model, X = rich_forest((3, 4, 5)), real_rows(n_rows=60)
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    labels, p = session.run(None, {"X": X})
    assert labels.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(p, model.predict_proba(X), rtol=0.0, atol=2e-6)


def test_what_onnx_cannot_say():
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match="with_beam"):
        rich_model(3, beam=2).to_onnx()
    with pytest.raises(ValueError, match="steps of a graph"):
        rich_forest([3, 4] * 45, backoff=False).to_onnx()


# -- the verb --------------------------------------------------------------------------------------


def run(*words: object) -> Any:
    return CliRunner().invoke(app, ["export", *map(str, words)])


@pytest.mark.parametrize("name", ["dense-int8", "narrow-int8"])
def test_every_form_is_written(tmp_path, name):
    source = HERE / f"{name}.thinleaf"
    for form in ("c", "json", "onnx"):
        result = run(source, "--to", form, "-o", tmp_path / form)
        assert result.exit_code == 0, result.output
    assert (tmp_path / "c").read_text() == c_array(source.read_bytes())
    assert json.loads((tmp_path / "json").read_text())["format"] == "thinleaf json"
    done = json.loads(run(source, "--to", "wasm", "-o", tmp_path / "web", "--json").stdout)
    assert {Path(name).name for name in done["written"]} >= {"thinleaf.js", "index.html"}
    assert (tmp_path / "web" / "model.thinleaf").read_bytes() == source.read_bytes()


def test_what_is_there_is_not_replaced(tmp_path):
    source = tmp_path / "model"
    shutil.copyfile(HERE / "dense.thinleaf", source)
    before = source.read_bytes()
    assert "the model file" in run(source, "-o", source).output
    assert "new or empty" in run(source, "--to", "wasm", "-o", tmp_path).output
    assert "C" in run(source, "-o", tmp_path / "c", "--name", "1 x").output
    assert not (tmp_path / "c").exists()
    assert source.read_bytes() == before


def test_damaged_files_are_not_exported(tmp_path):
    source = tmp_path / "model"
    source.write_bytes((HERE / "dense.thinleaf").read_bytes()[:-1])
    with pytest.raises(ModelFileError):
        export(source, "c", tmp_path / "c")
    assert run(source, "-o", tmp_path / "c").exit_code == 1
    assert not (tmp_path / "c").exists()
    with pytest.raises(ValueError, match="no ONNX form"):
        export(HERE / "label-tree.thinleaf", "onnx", tmp_path / "c")
    with pytest.raises(ValueError, match="must be one of"):
        export(HERE / "dense.thinleaf", "go", tmp_path / "c")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler (gcc)")
def test_the_array_is_the_file(tmp_path):
    content = bytes(range(256)) * 3
    code = '#include <stdio.h>\n#include "m.h"\n'
    code += "int main(void)\n{\n    fwrite(m, 1, sizeof m, stdout);\n    return 0;\n}\n"
    (tmp_path / "m.h").write_text(c_array(content, "m"))
    (tmp_path / "m.c").write_text(code)
    subprocess.run(["gcc", "-std=c99", tmp_path / "m.c", "-o", tmp_path / "m"], check=True)
    assert subprocess.run([tmp_path / "m"], capture_output=True, check=True).stdout == content
