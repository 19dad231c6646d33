"""The examples in C and Rust compile without a warning, and answer as Python does."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.data.vectors.make import EXPECTED, HERE
from tests.native.compiled import NATIVE, STRICT, needs_compiler
from thinleaf import SoftmaxTreeClassifier
from thinleaf.native.c_array import c_array

pytestmark = needs_compiler
EXAMPLES = Path(__file__).parents[2] / "examples" / "native"
VECTORS = json.loads(EXPECTED.read_text("utf-8"))
SAME = ("-ffp-contract=off", f"-I{NATIVE}")


def run(*command: object, **options) -> str:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_lines_in_c(tmp_path):
    program = tmp_path / "predict"
    run("gcc", *STRICT, "-O2", *SAME, EXAMPLES / "predict.c", "-o", program, "-lm")
    for name in ("text-words", "dense-int8"):
        expected = VECTORS[name]
        rows = [" ".join(map(repr, row)) for row in expected.get("rows", [])]
        lines = [text.replace("\n", " ") for text in expected.get("texts", rows)]
        out = run(program, HERE / f"{name}.thinleaf", 2, input="\n".join(lines) + "\n")
        for line, labels in zip(out.splitlines(), expected["topk"], strict=True):
            first, _, second, _ = line.split("\t")
            assert [first, second] == list(map(str, labels[:2]))
    done = subprocess.run([program, EXAMPLES / "predict.c"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "no model file" in done.stderr


def test_a_model_in_the_program(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 6
    X = (2 * rng.normal(size=(6, 8))[y] + rng.normal(size=(300, 8))).astype(np.float32)
    model = SoftmaxTreeClassifier(depth=2, leaf_classes=3, max_sweeps=2, random_state=0).fit(X, y)
    frozen = model.freeze(weights="int8")
    frozen.save(tmp_path / "model")
    (tmp_path / "model.h").write_text(c_array((tmp_path / "model").read_bytes()))
    program = tmp_path / "embedded"
    options = [
        "-std=c99",
        "-Os",
        "-DTL_ASCII_ONLY",
        "-ffunction-sections",
        "-Wl,--gc-sections",
        "-s",
    ]
    source = EXAMPLES / "embedded.c"
    run("gcc", *options, *SAME, f"-I{tmp_path}", source, "-o", program, "-lm")
    for x in X[:5]:
        out = run(program, input=" ".join(map(repr, x.tolist())))
        assert int(out) == frozen.predict_one(x)
    if shutil.which("size"):
        text, data, bss = map(int, run("size", program).splitlines()[1].split()[:3])
        assert text + data + bss <= 64 * 1024


@pytest.mark.skipif(shutil.which("rustc") is None, reason="there is no Rust")
def test_lines_in_rust(tmp_path):
    run(
        "gcc",
        "-std=c99",
        "-O2",
        *SAME,
        "-c",
        EXAMPLES / "thinleaf.c",
        "-o",
        tmp_path / "thinleaf.o",
    )
    run("ar", "rcs", tmp_path / "libthinleaf.a", tmp_path / "thinleaf.o")
    program = tmp_path / "predict"
    library = ["-L", tmp_path, "-l", "static=thinleaf"]
    run("rustc", "-O", "-D", "warnings", EXAMPLES / "predict.rs", *library, "-o", program)
    for name in ("text-both", "label-tree-text"):
        lines = "\n".join(VECTORS[name]["texts"]) + "\n"
        out = run(program, HERE / f"{name}.thinleaf", input=lines)
        assert out.splitlines() == VECTORS[name]["predict"]
