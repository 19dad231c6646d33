"""The command line does what the library does, says what is wrong, and ends as it should."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import thinleaf
from tests.test_import import modules_after
from tests.text_cases import made_texts
from thinleaf import (
    AdaptiveSoftmaxTreeClassifier,
    LOMTreeClassifier,
    OnlineOneVsAllClassifier,
    RecallTreeClassifier,
    SoftmaxTreeClassifier,
    TextClassifier,
)
from thinleaf.cli import app
from thinleaf.cli import train as train_verb
from thinleaf.cli._estimator import parse_assignment
from thinleaf.cli._output import Output, size, table, to_json
from thinleaf.datasets import label_array, read_examples
from thinleaf.measuring import evaluate, metrics
from thinleaf.model.frozen import FrozenTree
from thinleaf.text.recipe import Recipe

QUICK = ["--max-sweeps", "2", "--jobs", "1", "--quiet"]
NAMES = [f"class{c}" for c in range(6)]
WORDS = ["red", "green", "blue", "round", "square", "flat"]


def thinleaf_(*arguments: Any, stdin: str | bytes | None = None) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def done(*arguments: Any, stdin: str | bytes | None = None) -> Result:
    """Run a command that must succeed."""
    result = thinleaf_(*arguments, stdin=stdin)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def wrong(*arguments: Any, code: int = 1, stdin: str | bytes | None = None) -> str:
    """Run a command that must fail; return what it says."""
    result = thinleaf_(*arguments, stdin=stdin)
    assert result.exit_code == code, (result.output, result.exception)
    assert "Traceback" not in result.output
    if code == 1:
        assert re.fullmatch(r"error: [^\n]+\n", result.stderr), result.stderr
    return result.stderr


def numbers(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % 6
    return (np.eye(6)[y] * 3 + rng.normal(size=(n_rows, 6))).round(4), y


def texts(n_rows: int, seed: int) -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % 6
    own = [f"a {WORDS[c]} {WORDS[(c + 1) % 6]} thing {rng.choice(WORDS)}" for c in y]
    return own, [NAMES[c] for c in y]


def lines_of(format: str, n_rows: int, seed: int) -> list[str]:
    """Return examples as a format has them."""
    if format in ("tsv", "fasttext"):
        own, y = texts(n_rows, seed)
        head = "{}\t{}" if format == "tsv" else "__label__{} {}"
        return [head.format(label, text) for label, text in zip(y, own, strict=True)]
    X, ids = numbers(n_rows, seed)
    if format == "libsvm":
        pairs = [" ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for x in X]
        return [f"{c + 10} {pair}" for c, pair in zip(ids, pairs, strict=True)]
    named = [" ".join(f"{WORDS[j]}:{v}" for j, v in enumerate(x)) for x in X]
    return [f"{c + 10} |f {pair}" for c, pair in zip(ids, named, strict=True)]


SUFFIX = {"libsvm": "svm", "vw": "vw", "fasttext": "ft", "tsv": "tsv"}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, dict[str, Path]]:
    """For each format: training and test data, the latter as gzip, and a model."""
    found = {}
    for format, suffix in SUFFIX.items():
        folder = tmp_path_factory.mktemp(format)
        paths = {
            "train": folder / f"train.{suffix}",
            "test": folder / f"test.{suffix}.gz",
            "model": folder / "model.thinleaf",
        }
        paths["train"].write_text("\n".join(lines_of(format, 240, 0)) + "\n", encoding="utf-8")
        with gzip.open(paths["test"], "wt", encoding="utf-8") as file:
            file.write("\n".join(lines_of(format, 90, 1)) + "\n")
        done("train", paths["train"], "--output", paths["model"], *QUICK)
        found[format] = paths
    return found


def rows_of(model: FrozenTree, path: Path) -> tuple[Any, np.ndarray]:
    """Return rows and labels of a file, in Python."""
    recipe = Recipe.of(model.sections, model.n_features)
    with recipe.open(path) as reader:
        examples = reader.read_all()
    return recipe.rows(examples), label_array(examples.labels)


each_format = pytest.mark.parametrize("format", list(SUFFIX))


# -- CLI = API -------------------------------------------------------------------------------------


@each_format
def test_training_is_that_of_python(files, format):
    paths = files[format]
    examples = read_examples(paths["train"])
    clf = tree = AdaptiveSoftmaxTreeClassifier(max_sweeps=2, random_state=0)
    if format in ("tsv", "fasttext"):
        X = examples.texts
        clf = TextClassifier(tree, random_state=0)
    else:
        X = examples.to_csr() if format == "vw" else examples.to_csr().toarray()
    clf.fit(X, label_array(examples.labels))
    model, expected = thinleaf.load(paths["model"]), clf.freeze()
    assert model.packed.sparse == (format != "libsvm")
    for name, array in expected.packed.arrays().items():
        np.testing.assert_array_equal(getattr(model.packed, name), array, err_msg=name)
    assert set(model.sections) == {"input", *expected.sections}
    for section, part in expected.sections.items():
        assert model.sections[section].metadata == part.metadata
        for name, array in part.arrays.items():
            np.testing.assert_array_equal(model.sections[section].arrays[name], array)
    clf = getattr(clf, "model_", clf)
    np.testing.assert_array_equal(model.labels, clf.classes_)
    assert model.summary["rows"] == 240
    assert model.summary["train_error"] == clf.history_[clf.best_round_]["train_error"]


@each_format
def test_predictions_are_those_of_python(files, format):
    paths = files[format]
    model = thinleaf.load(paths["model"])
    X, _ = rows_of(model, paths["test"])
    result = done("predict", paths["model"], paths["test"], "--quiet")
    assert result.stdout.splitlines() == list(map(str, model.predict(X).tolist()))
    result = done("predict", paths["model"], paths["test"], "--top-k", 3, "--proba", "--json")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    labels, p = model.predict_topk(X, 3)
    assert [record["labels"] for record in records] == labels.tolist()
    assert [record["probabilities"] for record in records] == p.tolist()
    assert [record["line"] for record in records] == list(range(1, 91))


@each_format
def test_evaluation_is_that_of_python(files, format):
    paths = files[format]
    beam = 2 if format in ("tsv", "libsvm") else 1
    arguments = (paths["model"], paths["test"], "--json", "--top-k", 2, "--beam", beam)
    arguments = (*arguments, *(("--temperature", 1.5) if beam > 1 else ()))
    record = json.loads(done("evaluate", *arguments).stdout)
    model = thinleaf.load(paths["model"]).with_beam(beam, temperature=1.5 if beam > 1 else 1.0)
    X, y = rows_of(model, paths["test"])
    held = metrics.perplexity(model.label_proba(X, y, smooth=False))
    assert record["rows"] == y.size
    assert record["unknown_labels"] == 0
    assert record["error"] == pytest.approx(np.mean(model.predict(X) != y))
    assert record["top_k_error"] == pytest.approx(
        metrics.top_k_error(y, model.predict_topk(X, 2)[0])
    )
    assert record["coverage"] == pytest.approx(held.coverage)
    assert record["covered_perplexity"] == pytest.approx(held.value)
    assert record["perplexity"] == pytest.approx(metrics.perplexity(model.label_proba(X, y)).value)
    assert record["us_per_row"] > 0.0


def test_a_temperature_needs_a_beam(files, tmp_path):
    paths = files["tsv"]
    start = ["train", paths["train"], "-o", tmp_path / "no", *QUICK]
    assert "give --beam 2 or more" in wrong(*start, "--temperature", 2)
    assert "give --beam 2 or more" in wrong(
        "predict", paths["model"], paths["test"], "--temperature", 2
    )
    options = ("--beam", 2, "--temperature", 2)
    for verb in ("evaluate", "inspect"):
        said = done(verb, paths["model"], paths["test"], *options).stdout
        assert "beam 2 at temperature 2" in said


@each_format
def test_a_beam_that_training_finds(files, tmp_path, format):
    data, path = files[format]["train"], tmp_path / "model.thinleaf"
    done("train", data, "-o", path, "--beam", "auto", "--trainable", *QUICK)
    model, clf = thinleaf.load(path), thinleaf.load_estimator(path)
    expected = clf.freeze(beam="auto")
    assert (model.beam, model.temperature) == (expected.beam, expected.temperature)
    X, _ = rows_of(model, files[format]["test"])
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_a_beam_that_training_did_not_look_for(tmp_path):
    """With few rows it is one path; decisions by training rows look for none."""
    data, path = tmp_path / "few.tsv", tmp_path / "model.thinleaf"
    data.write_text("\n".join(lines_of("tsv", 24, 0)) + "\n", encoding="utf-8")
    start = ("train", data, "-o", path, "--beam", "auto", *QUICK)
    assert "has not looked for a beam" in wrong(*start, "--set", "decisions=training")
    assert "give --beam" in wrong(*start, "--set", "beam=4")
    assert not path.exists()
    done(*start)
    assert thinleaf.load(path).beam == 1


def test_every_parameter_can_be_set(files, tmp_path):
    path = tmp_path / "model.thinleaf"
    done(
        "train", files["libsvm"]["train"], "-o", path, "--model", "st", "--depth", 1,
        "--leaf-classes", 4, "--set", "router_l1=0.5", "--set", "overlap=None", "--set",
        "absent=zero_one", "--validation", 0.2, "--seed", 3, "--trainable", "--beam", 2,
        "--temperature", 3, "--weights", "int8", "--rows", "sparse", *QUICK,
    )  # fmt: skip
    clf = SoftmaxTreeClassifier(
        depth=1, leaf_classes=4, router_l1=0.5, overlap=None, absent="zero_one",
        validation_fraction=0.2, random_state=3, max_sweeps=2,
    )  # fmt: skip
    examples = read_examples(files["libsvm"]["train"])
    clf.fit(examples.to_csr(), label_array(examples.labels))
    model, expected = thinleaf.load(path), clf.freeze(beam=2, weights="int8")
    expected = expected.with_beam(2, temperature=3.0)
    assert (model.beam, model.temperature, model.packed.weights) == (2, 3.0, "int8")
    np.testing.assert_array_equal(
        model.predict_proba(examples.to_csr()), expected.predict_proba(examples.to_csr())
    )
    assert model.summary["validation_error"] is not None
    again = thinleaf.load_estimator(path)
    assert (again.depth, again.overlap, again.verbose) == (1, None, 0)
    np.testing.assert_array_equal(again.tree_.children, clf.tree_.children)


@pytest.mark.parametrize(
    ("model", "estimator"),
    [
        ("recall", RecallTreeClassifier(4, n_passes=2, random_state=1)),
        ("lom", LOMTreeClassifier(n_passes=2, random_state=1)),
        ("ova", OnlineOneVsAllClassifier(n_passes=2, random_state=1)),
    ],
)
def test_online_models(files, tmp_path, model, estimator):
    path, train_file = tmp_path / "model.thinleaf", files["tsv"]["train"]
    more = ["--max-candidates", 4] if model == "recall" else []
    result = done(
        "train", train_file, "-o", path, "--model", model, "--passes", 2, "--seed", 1, *more,
        "--trainable",
    )  # fmt: skip
    assert "256 examples  progressive loss" in result.stderr
    assert ", progressive loss " in result.stdout
    examples = read_examples(train_file)
    found = thinleaf.load(path)
    X = found.input.features.transform(examples.texts)
    estimator.fit(X, label_array(examples.labels))
    assert found.summary["progressive_loss"] == estimator.progressive_loss_
    np.testing.assert_array_equal(found.predict_proba(X), estimator.freeze(beam=1).predict_proba(X))
    record = json.loads(done("evaluate", path, files["tsv"]["test"], "--json").stdout)
    assert record["error"] < 0.5
    done("inspect", path)
    again = thinleaf.load_estimator(path)
    again.partial_fit(X, label_array(examples.labels))
    estimator.partial_fit(X, label_array(examples.labels))
    np.testing.assert_array_equal(again.predict_proba(X), estimator.predict_proba(X))
    message = wrong("train", train_file, "-o", path, "--model", model, "--depth", 3)
    assert "has no parameter 'depth'" in message


def test_hashed_texts(files, tmp_path):
    path = tmp_path / "model.thinleaf"
    done(
        "train", files["tsv"]["train"], "-o", path, "--text", "hashing", "--buckets", 256,
        "--ngrams", "1", *QUICK,
    )  # fmt: skip
    model = thinleaf.load(path)
    assert model.n_features == 256
    X, y = rows_of(model, files["tsv"]["test"])
    assert np.mean(model.predict(X) == y) > 0.8
    assert "bucket" in done("inspect", path).stdout


@pytest.mark.parametrize(("weights", "winner"), [((1, 3), "b"), ((3, 1), "a")])
def test_importance_of_vw_rows_is_a_weight(tmp_path, weights, winner):
    path, model = tmp_path / "train.vw", tmp_path / "model.thinleaf"
    path.write_text("a {} |f x:1\nb {} |f x:1\nc |f y:1\n".format(*weights) * 20)
    done("train", path, "-o", model, *QUICK)
    assert done("predict", model, "-q", stdin="|f x:1\n").stdout == f"{winner}\n"


def test_a_model_saved_in_python_predicts(files, tmp_path):
    examples = read_examples(files["libsvm"]["train"])
    clf = SoftmaxTreeClassifier(depth=1, max_sweeps=2, random_state=0)
    clf.fit(examples.to_csr(), label_array(examples.labels)).save(tmp_path / "model.thinleaf")
    out = done("predict", tmp_path / "model.thinleaf", files["libsvm"]["train"], "-q").stdout
    assert out.split() == list(map(str, clf.predict(examples.to_csr()).tolist()))
    message = wrong("predict", tmp_path / "model.thinleaf", files["tsv"]["train"], "-q")
    assert "the file has texts" in message


# -- predict ---------------------------------------------------------------------------------------


def test_columns(files):
    paths = files["tsv"]
    line = "a red green thing\n"
    one = done("predict", paths["model"], stdin=line).stdout
    assert one == "class0\n"
    label, p = done("predict", paths["model"], "-", "--proba", stdin=line).stdout.split("\t")
    assert label == "class0"
    assert 0.0 < float(p) <= 1.0
    top = done("predict", paths["model"], "--top-k", 3, stdin=line).stdout
    assert len(top.split("\t")) == 3
    both = done("predict", paths["model"], "--top-k", 2, "--proba", stdin=line).stdout.split("\t")
    assert (both[0], float(both[1])) == (label, float(p))
    record = json.loads(done("predict", paths["model"], "--proba", "--json", stdin=line).stdout)
    assert (record["label"], record["line"]) == ("class0", 1)
    assert record["probability"] == pytest.approx(float(p), rel=1e-5)


def test_answers_stand_at_the_line_of_their_text(files):
    model = files["tsv"]["model"]
    text = "\na red green thing\n\n\nwhatever\ta blue round thing\n\n"
    assert done("predict", model, stdin=text).stdout == "\nclass0\n\n\nclass2\n\n"
    out = done("predict", model, "--json", stdin=text).stdout
    assert [json.loads(line)["line"] for line in out.splitlines()] == [2, 5]


def test_unlabelled_lines_are_all_text(files):
    model = files["tsv"]["model"]
    text = "red green red green\tthing\n"
    assert done("predict", model, "--unlabelled", stdin=text).stdout == "class0\n"
    assert done("predict", model, stdin=text).stdout != "class0\n"


def test_rows_without_labels(files):
    paths = files["libsvm"]
    labelled = lines_of("libsvm", 20, 2)
    bare = [line.partition(" ")[2] for line in labelled]
    outputs = [
        done("predict", paths["model"], stdin="\n".join(lines) + "\n").stdout
        for lines in (labelled, bare)
    ]
    assert outputs[0] == outputs[1]


def test_texts_in_another_format(files):
    expected = done("evaluate", files["tsv"]["model"], files["tsv"]["test"], "--json")
    found = done(
        "evaluate", files["tsv"]["model"], files["fasttext"]["test"], "--format", "fasttext",
        "--json",
    )  # fmt: skip
    assert json.loads(found.stdout)["error"] == json.loads(expected.stdout)["error"]


def test_unknown_features_are_left_out_and_counted(files):
    result = done("predict", files["libsvm"]["model"], stdin="3:1 7:1 9:1\n")
    assert "2 entries were left out" in result.stderr
    assert not done("predict", files["libsvm"]["model"], "-q", stdin="3:1 7:1\n").stderr


def test_bad_lines_can_be_skipped(files):
    result = done(
        "predict", files["libsvm"]["model"], "--on-error", "skip", stdin="3:9\nx y\n4:9\n"
    )
    assert result.stdout == "12\n\n13\n"
    assert "<stdin>:2: " in result.stderr


def test_what_comes_before_a_bad_line_is_answered(files):
    result = thinleaf_("predict", files["libsvm"]["model"], stdin="3:9\nx y\n")
    assert (result.exit_code, result.stdout) == (1, "12\n")
    assert result.stderr.startswith("error: <stdin>:2: ")


# -- evaluate, inspect, bench ----------------------------------------------------------------------


def test_unknown_labels_are_errors_and_are_counted(files):
    model = files["libsvm"]["model"]
    stdin = "\n".join(["99 3:9", "name 3:9", "12 3:9", "12 3:9"])
    record = json.loads(done("evaluate", model, "-", "--json", stdin=stdin).stdout)
    assert (record["rows"], record["unknown_labels"]) == (4, 2)
    assert record["error"] == record["top_k_error"] == 0.5
    assert record["coverage"] == 1.0
    record = json.loads(done("evaluate", model, "-", "--json", stdin="99 3:9\n").stdout)
    assert (record["error"], record["perplexity"], record["coverage"]) == (1.0, None, None)


def test_evaluation_for_people(files):
    paths = files["tsv"]
    out = done("evaluate", paths["model"], paths["test"]).stdout
    for expected in ("rows", "top-5 error", "perplexity", "coverage", "µs a row"):
        assert expected in out
    for expected in ("mean over labels", "calibration error", "worst of 6 labels", "F1"):
        assert expected in out
    assert "worst of" not in done("evaluate", paths["model"], paths["test"], "--show", 0).stdout


@pytest.mark.parametrize("format", ["tsv", "libsvm"])
def test_labels_and_confusions_are_those_of_python(files, tmp_path, format):
    """Labels are exchanged, so that there are confusions: 10 for 11, class0 for class1."""
    names = ("class0", "class1") if format == "tsv" else ("10", "11")
    lines = [line.replace(names[0], names[1], 1) for line in lines_of(format, 60, 1)]
    data = tmp_path / f"data.{SUFFIX[format]}"
    data.write_text("\n".join(lines) + "\n", encoding="utf-8")
    table, report, figure = (tmp_path / f"found.{end}" for end in ("csv", "html", "svg"))
    model = thinleaf.load(files[format]["model"])
    more = ("--csv", table, "--html", report, "--plot", figure, "--examples", 2)
    said = done("evaluate", files[format]["model"], data, "--json", *more).stdout
    record = json.loads(said)
    X, y = rows_of(model, data)
    found = evaluate(model, X, y, n_examples=2)
    assert record["labels"] == list(found.labels.records())
    assert record["ece"] == found.reliability.ece
    pairs = [(p.label, p.predicted, p.count) for p in found.pairs]
    assert [(p["label"], p["predicted"], p["rows"]) for p in record["confused"]] == pairs
    example = record["confused"][0]["examples"][0]
    assert example["line"] == found.pairs[0].examples[0].number + 1
    assert example.get("text") == (
        lines[example["line"] - 1].split("\t")[1] if format == "tsv" else None
    )
    assert table.read_text(encoding="utf-8").startswith("label,known,precision")
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "<svg" in figure.read_text(encoding="utf-8")
    out = done("evaluate", files[format]["model"], data).stdout
    assert f"{names[1]} → {names[0]}" in out
    assert f"line {example['line']}" in out


def test_labels_that_a_model_does_not_know_are_named(files):
    stdin = "\n".join(["99 3:9", "a\x1b[31mb 3:9", "12 3:9"])
    model = files["libsvm"]["model"]
    out = done("evaluate", model, "-", stdin=stdin).stdout
    assert "labels that the model does not know: 99 (1), a\ufffd[31mb (1)" in out
    record = json.loads(done("evaluate", model, "-", "--json", stdin=stdin).stdout)
    assert [entry["label"] for entry in record["unknown"]] == ["99", "a\x1b[31mb"]


def test_reports_are_never_written_over_what_is_read_or_each_other(files, tmp_path):
    paths = files["tsv"]
    start = ("evaluate", paths["model"], paths["test"])
    assert "is the model file" in wrong(*start, "--csv", paths["model"])
    assert "is the data file" in wrong(*start, "--html", paths["test"])
    both = tmp_path / "both"
    assert "give another name" in wrong(*start, "--csv", both, "--html", both)
    assert "ends in .png" in wrong(*start, "--plot", tmp_path / "figure.gif")
    assert list(tmp_path.iterdir()) == []


def test_inspection(files):
    paths = files["tsv"]
    out = done("inspect", paths["model"]).stdout
    for expected in ("6 classes", "depth  routers  leaves", "largest leaves", "class0", "red"):
        assert expected in out
    assert "train error: " in out
    view = json.loads(done("inspect", paths["model"], paths["test"], "--json").stdout)
    model = thinleaf.load(paths["model"])
    X, y = rows_of(model, paths["test"])
    assert view["n_rows"] == y.size
    assert view["error"] == pytest.approx(np.mean(model.predict(X) != y))
    assert view["n_leaves"] == model.n_leaves
    assert view["summary"]["rows"] == 240
    assert view["sections"] == ["input", "text"]


def test_a_forest(files, tmp_path):
    paths = files["tsv"]
    model = tmp_path / "forest"
    settings = ("--trees", 3, "--max-sweeps", 2, "--set", "bootstrap=True", "--set", "overlap=None")
    said = done("train", paths["train"], "-o", model, "--model", "forest", *settings, "--trainable")
    assert "3 trees with" in said.stdout
    clf = thinleaf.load_estimator(model).model_
    assert clf.bootstrap
    assert clf.estimator.overlap is None
    assert [tree.max_sweeps for tree in clf.estimators_] == [2, 2, 2]
    view = json.loads(done("inspect", model, paths["test"], "--json").stdout)
    assert [entry["trees"] for entry in view["curve"]] == [1, 2, 3]
    assert view["curve"][-1]["error"] == view["error"]
    assert "batch µs a row" in done("inspect", model, paths["test"]).stdout
    fixed = ("--model", "forest", "--trees", 2, "--depth", 1, "--max-sweeps", 2)
    done("train", paths["train"], "-o", model, *fixed, "--trainable")
    assert thinleaf.load_estimator(model).model_.estimator.depth == 1


@pytest.mark.parametrize("format", ["libsvm", "tsv"])
def test_bench(files, format):
    paths = files[format]
    arguments = (paths["model"], paths["test"], "--limit", 50, "--repeats", 3)
    record = json.loads(done("bench", *arguments, "--json").stdout)
    assert record["rows"] == 50
    assert [entry["beam"] for entry in record["beams"]] == [1, 2, 4, 8]
    for entry in record["beams"]:
        for spread in (entry["single_us"], entry["batch_us"]):
            assert 0.0 < spread["best"] <= spread["median"] <= spread["p99"]
    model = thinleaf.load(paths["model"])
    X, y = rows_of(model, paths["test"])
    report = model.quantization_report(X[:50], y[:50])
    assert [entry["weights"] for entry in record["weights"]] == [e["weights"] for e in report]
    assert [e["error"] for e in record["weights"]] == pytest.approx([e["error"] for e in report])
    assert "beam" in done("bench", *arguments).stdout
    hot = json.loads(done("bench", *arguments, "--json", "--temperature", 8).stdout)
    assert (record["temperature"], hot["temperature"]) == (1.0, 8.0)
    assert hot["beams"][0]["error"] == record["beams"][0]["error"]  # a single path
    assert "beam at temperature 8" in done("bench", *arguments, "--temperature", 8).stdout


# -- warmup and demo -------------------------------------------------------------------------------


def test_warmup():
    record = json.loads(done("warmup", "--json").stdout)
    assert record["seconds"] > 0.0
    assert record["cache_directory"]
    assert "compiled" in done("warmup").stdout
    assert done("warmup", "-q").output == ""


def test_warmup_that_keeps_nothing_is_an_error(monkeypatch):
    monkeypatch.setattr("thinleaf.warmup.cache_directory", lambda: None)
    assert "NUMBA_CACHE_DIR" in wrong("warmup", "-q")


def test_demo(monkeypatch):
    record = json.loads(done("demo", "--rows", 600, "--json", "--quiet").stdout)
    assert 0.0 < record["tree"]["error"] < 1.0
    assert record["flat_softmax"]["bytes"] > 0
    assert "ends in .png" in wrong("demo", "--figure", "x.txt")
    assert "does not exist" in wrong("demo", "--figure", "no/such/x.svg")
    monkeypatch.setitem(sys.modules, "simple_icd_10_cm", None)
    assert "pip install 'thinleaf[demo]'" in wrong("demo", "-q")


# -- what is wrong ---------------------------------------------------------------------------------


def test_errors_of_data_name_file_and_line(files, tmp_path):
    bad = tmp_path / "bad.svm"
    bad.write_text("1 1:2\n2 1:x\n")
    assert f"{bad}:2: " in wrong("train", bad, "-o", tmp_path / "m", "-q")
    assert f"{bad}:2: " in wrong("evaluate", files["libsvm"]["model"], bad, "-q")
    done("train", bad, "-o", tmp_path / "m", "--on-error", "skip", *QUICK)
    missing = tmp_path / "missing.svm"
    assert f"{missing}: No such file" in wrong("train", missing, "-o", tmp_path / "m")
    cut = tmp_path / "cut.svm.gz"
    cut.write_bytes(files["libsvm"]["test"].read_bytes()[:-20])
    assert "cut short" in wrong("evaluate", files["libsvm"]["model"], cut, "-q")
    assert "no label" in wrong("evaluate", files["libsvm"]["model"], "-", "-q", stdin="1:1\n")
    assert "no example" in wrong("predict", files["libsvm"]["model"], stdin="")


def test_errors_of_models(files, tmp_path):
    path = tmp_path / "model.thinleaf"
    path.write_bytes(files["tsv"]["model"].read_bytes()[:-10])
    for verb in (("predict",), ("inspect",), ("evaluate", files["tsv"]["test"])):
        assert "damaged" in wrong(verb[0], path, *verb[1:], "-q")
    assert "No such file" in wrong("predict", tmp_path / "none")
    model = thinleaf.load(files["tsv"]["model"])
    sections = {name: part for name, part in model.sections.items() if name != "text"}
    thinleaf.FrozenTree(model.packed, model.labels, sections=sections).save(path)
    assert "no valid recipe" in wrong("predict", path, stdin="a\n")


def test_errors_of_parameters(files, tmp_path):
    data, model = files["libsvm"]["train"], tmp_path / "m"
    start = ("train", data, "-o", model, "-q")
    message = wrong(*start, "--set", "contracton=0.5")
    assert (
        "no parameter 'contracton': did you mean 'contraction'? It has absent, beam, beta"
        in message
    )
    assert "'contraction' parameter" in wrong(*start, "--contraction", 7)
    assert "'max_rounds' parameter" in wrong(*start, "--set", "max_rounds=many")
    assert "no parameter 'depth'" in wrong(*start, "--depth", 3)
    assert "no parameter 'max_rounds'" in wrong(*start, "--model", "st", "--max-rounds", 3)
    assert "monotone=True needs" in wrong(*start, "--set", "monotone=True")
    assert "--text is for texts" in wrong(*start, "--text", "tfidf")
    assert "n_buckets" in wrong(
        "train", files["tsv"]["train"], "-o", model, "-q", "--text", "hashing", "--buckets", 100
    )
    assert "lower min_df" in wrong(
        "train", files["tsv"]["train"], "-o", model, "--min-df", 999, "-q"
    )
    assert "does not exist" in wrong("train", data, "-o", tmp_path / "no" / "m")
    assert "is a directory" in wrong("train", data, "-o", tmp_path)
    assert "is the data file" in wrong("train", data, "-o", data)
    assert "--top-k is 99" in wrong("predict", files["tsv"]["model"], "--top-k", 99, stdin="a\n")
    assert "takes no tsv" in wrong("predict", files["vw"]["model"], data, "--format", "tsv")
    assert not model.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("fly",),
        ("train", "data"),
        ("train", "data", "-o", "model", "--set", "depth"),
        ("train", "data", "-o", "model", "--ngrams", "few"),
        ("train", "data", "-o", "model", "--model", "bush"),
        ("train", "data", "-o", "model", "--format", "xml"),
        ("predict", "model", "--beam", "0"),
        ("predict", "model", "--top-k", "0"),
        ("evaluate", "model"),
        ("demo", "--fast"),
    ],
)
def test_misspelt_commands_have_their_own_code(arguments):
    wrong(*arguments, code=2)


def test_values_of_parameters_are_python_or_else_text():
    cases = {"a=1": 1, "a=1e-3": 1e-3, "a=None": None, "a=none": "none", "a=auto": "auto"}
    cases |= {"a={'x': 2}": {"x": 2}, "a='1'": "1", "a=": "", "a=b=c": "b=c", "a = True": True}
    for text, value in cases.items():
        assert parse_assignment(text) == ("a", value)


# -- endings ---------------------------------------------------------------------------------------


def test_ctrl_c_in_a_fit_keeps_the_tree_so_far(files, tmp_path, monkeypatch):
    path = tmp_path / "model.thinleaf"
    fit = AdaptiveSoftmaxTreeClassifier.fit

    def interrupted(self, X, y, sample_weight=None):
        import warnings

        fit(self, X, y, sample_weight)
        warnings.warn("interrupted: growth ended in round 0", stacklevel=2)

    monkeypatch.setattr(AdaptiveSoftmaxTreeClassifier, "fit", interrupted)
    result = thinleaf_("train", files["tsv"]["train"], "-o", path, "--max-sweeps", 2)
    assert result.exit_code == 130
    assert "warning: interrupted" in result.stderr
    assert thinleaf.load(path).n_classes == 6


def test_ctrl_c_before_anything_is_there(files, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(train_verb, "read_all", interrupted)
    result = thinleaf_("train", files["tsv"]["train"], "-o", tmp_path / "m")
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")
    assert not (tmp_path / "m").exists()


def process(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "thinleaf", *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, **options)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_pipe_is_answered_line_by_line_until_ctrl_c(files):
    with process("predict", files["tsv"]["model"], stdin=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        for text, answer in ((b"a red green thing\n", b"class0\n"), (b"blue round\n", b"class2\n")):
            running.stdin.write(text)
            running.stdin.flush()
            assert running.stdout.readline() == answer
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 130
        assert running.stderr.read() == b"interrupted\n"


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_closed_pipe_is_a_quiet_end(files, tmp_path):
    many = tmp_path / "many.tsv"
    many.write_text("\n".join(lines_of("tsv", 300, 0) * 200))
    with process("predict", files["tsv"]["model"], many, "--proba", "-q") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline().startswith(b"class0\t")
        running.stdout.close()
        assert running.wait(timeout=60) == 141
        assert running.stderr.read() == b""


# -- the rest --------------------------------------------------------------------------------------


def test_version_and_help_come_at_once():
    assert done("--version").stdout == f"thinleaf {thinleaf.__version__}\n"
    loaded = modules_after(
        "from typer.testing import CliRunner; from thinleaf.cli import app\n"
        "assert CliRunner().invoke(app, ['train', '--help']).exit_code == 0"
    )
    assert "thinleaf.cli.train" in loaded
    assert not loaded & {"numpy", "numba", "sklearn", "scipy", "thinleaf.model.frozen"}


def test_rows_of_features_need_no_scikit_learn(files):
    paths = files["libsvm"]
    loaded = modules_after(
        "from typer.testing import CliRunner; from thinleaf.cli import app\n"
        f"result = CliRunner().invoke(app, ['predict', {str(paths['model'])!r}, "
        f"{str(paths['test'])!r}])\nassert result.exit_code == 0, result.output"
    )
    assert "numba" in loaded
    assert "sklearn" not in loaded


def test_training_talks_unless_it_is_told_not_to(files, tmp_path):
    arguments = ("train", files["tsv"]["train"], "-o", tmp_path / "m", "--max-sweeps", 1)
    result = done(*arguments)
    assert "reading train.tsv: 240 rows" in result.stderr
    assert "wrote" in result.stdout
    record = json.loads(done(*arguments, "--json", "--quiet").stdout)
    assert (record["rows"], record["classes"]) == (240, 6)
    assert record["file_bytes"] == (tmp_path / "m").stat().st_size
    assert done(*arguments, "--quiet").output == ""


def test_training_from_standard_input(files, tmp_path):
    text = files["libsvm"]["train"].read_text()
    done("train", "-", "-o", tmp_path / "m", *QUICK, stdin=text)
    a, b = (thinleaf.load(path).packed for path in (tmp_path / "m", files["libsvm"]["model"]))
    for name, array in a.arrays().items():
        np.testing.assert_array_equal(array, getattr(b, name))


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with Output().progress("reading [red]{x}.tsv", "rows", 10) as advance:
        advance(10)
    assert "reading [red]{x}.tsv" in capsys.readouterr().err
    with Output(quiet=True).progress("reading", "rows") as advance:
        advance(10)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_small_things():
    assert to_json({"a": float("nan"), "b": np.float32(0.5), 3: [np.int64(1)], "ü": "ß"}) == (
        '{"a": null, "b": 0.5, "3": [1], "ü": "ß"}'
    )
    assert [size(n) for n in (7, 7_000, 7_000_000, 7_000_000_000)] == [
        "7 bytes", "7.0 kB", "7.0 MB", "7.0 GB",
    ]  # fmt: skip
    assert table(("a", "b"), [("left", "1"), ("x", "22")]) == "a      b\nleft   1\nx     22"


# -- label trees -----------------------------------------------------------------------------------


def label_tree(tmp_path: Path, format: str, *options: Any) -> dict[str, Path]:
    paths = {name: tmp_path / f"{name}.{format}" for name in ("train", "test")}
    for seed, path in enumerate(paths.values()):
        path.write_text("\n".join(lines_of(format, 90, seed)) + "\n")
    paths["model"] = tmp_path / "model"
    settings = ["--set", "dim=8", "--set", "arity=3", "--set", "epochs=20", "--jobs", "1", "-q"]
    done(
        "train", paths["train"], "-o", paths["model"], "--model", "label-tree", *settings, *options
    )
    return paths


@pytest.mark.parametrize(
    ("format", "options"), [("tsv", ()), ("libsvm", ()), ("fasttext", ("--text", "tfidf"))]
)
def test_label_trees_are_trained_and_used(tmp_path, format, options):
    paths = label_tree(tmp_path, format, *options)
    record = json.loads(done("evaluate", paths["model"], paths["test"], "--json").stdout)
    assert record["rows"] == 90
    assert record["error"] < 0.3
    assert record["coverage"] == 1.0
    clf = thinleaf.load_estimator(paths["model"])
    examples = read_examples(paths["test"])
    if format == "tsv":
        assert done("predict", paths["model"], paths["test"]).stdout.split() == (
            clf.predict(examples.texts).tolist()
        )
    top = done("predict", paths["model"], paths["test"], "--top-k", 2, "--json", "--proba").stdout
    assert len(json.loads(top.splitlines()[0])["labels"]) == 2


def test_label_trees_are_shown(tmp_path):
    paths = label_tree(tmp_path, "tsv", "--ngrams", "1-3")
    clf = thinleaf.load_estimator(paths["model"])
    assert clf.ngrams == 3
    out = done("inspect", paths["model"]).stdout
    assert "label tree: 6 labels" in out
    assert "balancedness β" in out
    assert "root (6 labels)  J " in out
    view = json.loads(done("inspect", paths["model"], paths["test"], "--json").stdout)
    expected = clf.inspect(*_texts_of(paths["test"]))
    assert np.allclose([node["J"] for node in view["nodes"]], expected.J)
    assert view["summary"]["rows"] == 90
    model = thinleaf.LabelTreeLanguageModel(dim=4, epochs=1, random_state=0).fit(["a b", "b a"] * 9)
    model.save(tmp_path / "language")
    assert "root" in done("inspect", tmp_path / "language").stdout
    assert "language model" in wrong("evaluate", tmp_path / "language", paths["test"])


def _texts_of(path: Path) -> tuple[list[str], np.ndarray]:
    examples = read_examples(path)
    return examples.texts, label_array(examples.labels)


def test_options_that_label_trees_do_not_have(tmp_path):
    paths = label_tree(tmp_path, "tsv")
    start = ["train", paths["train"], "-o", tmp_path / "no", "--model", "label-tree"]
    for options in (["--beam", 2], ["--temperature", 2], ["--weights", "int8"], ["--trainable"]):
        assert "for softmax trees" in wrong(*start, *options)
    assert "has no parameter 'depth'" in wrong(*start, "--depth", 3)
    assert "single words" in wrong(*start, "--ngrams", "2-3", "-q")
    for option in ("--beam", "--temperature"):
        assert "searched exactly" in wrong("predict", paths["model"], paths["test"], option, 2)
    assert "label tree" in wrong("bench", paths["model"], paths["test"])


# -- when not to answer ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rejecting(tmp_path_factory) -> tuple[Path, Path]:
    """Return a model of texts that has learned when to reject, and texts to ask it."""
    directory = tmp_path_factory.mktemp("rejecting")
    train, asked = directory / "train.tsv", directory / "asked.txt"
    made, labels = made_texts(600)
    train.write_text("".join(f"{y}\t{t}\n" for y, t in zip(labels, made, strict=True)))
    asked.write_text("qwerty asdfgh\nmy card was stolen please help\n")
    done("train", train, "-o", directory / "model", "--quiet", "--jobs", 1)
    return directory / "model", asked


def test_texts_are_rejected(rejecting):
    model, asked = rejecting
    ask = ("predict", model, asked, "--unlabelled", "--quiet", "--reject", 0.8)
    assert done(*ask).stdout == "\ncard\n"
    records = [json.loads(line) for line in done(*ask, "--json").stdout.splitlines()]
    assert [record["label"] for record in records] == [None, "card"]
    assert [record["rejected"] for record in records] == [True, False]
    lines = done(*ask, "--proba").stdout.splitlines()
    assert lines[0].startswith("\t")
    assert lines[1].startswith("card\t")
    records = [json.loads(x) for x in done(*ask, "--top-k", 2, "--json").stdout.splitlines()]
    assert records[0] == {"line": 1, "labels": [], "rejected": True}
    assert len(records[1]["labels"]) == 2
    assert done(*ask, "--top-k", 2).stdout.splitlines()[0] == ""


def test_rows_are_rejected_by_probability(rejecting, files):
    model, asked = rejecting
    texts = [line for line in asked.read_text().splitlines() if line]
    p = thinleaf.load(model).predict_topk(texts, 1)[1][:, 0]
    ask = ("predict", model, asked, "--unlabelled", "--quiet", "--min-proba")
    limit = float((p[0] + p[1]) / 2)
    assert done(*ask, limit).stdout == "\ncard\n"
    rows = files["libsvm"]
    lines = done("predict", rows["model"], rows["test"], "-q", "--min-proba", 0.999999).stdout
    assert "" in lines.splitlines()


def test_a_model_that_does_not_know_when_to_reject(rejecting, files, tmp_path):
    rows = files["libsvm"]
    assert "give --min-proba" in wrong("predict", rows["model"], rows["test"], "--reject", 0.9)
    for option in ("--reject", "--min-proba"):
        assert "above 0 and below 1" in wrong("predict", *rejecting, option, 1.5)
    data = tmp_path / "train.tsv"
    data.write_text("\n".join(lines_of("tsv", 400, 0)))
    model = tmp_path / "model"
    done("train", data, "-o", model, "--no-rejection", *QUICK)
    assert "rejection" not in thinleaf.load(model).sections
    done("train", data, "-o", model, *QUICK)
    assert "rejection" in thinleaf.load(model).sections


@pytest.mark.parametrize("kind", ["auto", "words", "tfidf", "chars", "both", "hashing"])
def test_features_of_texts(files, tmp_path, kind):
    path = tmp_path / "model"
    done("train", files["tsv"]["train"], "-o", path, "--text", kind, "--no-rejection", *QUICK)
    found = thinleaf.load(path).input.features.kind
    assert found == {"words": "tfidf", "auto": found}.get(kind, kind)


def test_features_that_are_set_are_not_chosen(files, tmp_path):
    start = ("train", files["tsv"]["train"], "-o", tmp_path / "model", *QUICK)
    done(*start, "--min-df", 3)
    features = thinleaf.load(tmp_path / "model").input.features
    assert (features.kind, features.min_df) == ("tfidf", 3)
    assert "chooses features by the texts" in wrong(*start, "--text", "auto", "--min-df", 3)


# -- explore ---------------------------------------------------------------------------------------


def test_explore(files, tmp_path):
    paths = files["tsv"]
    out = tmp_path / "tree.html"
    record = json.loads(
        done("explore", paths["model"], paths["test"], "-o", out, "--json", "-q").stdout
    )
    assert record["nbytes"] == out.stat().st_size
    assert record["n_answering"] == record["n_leaves"]
    assert record["notes"] == []
    assert "<!doctype html>" in out.read_text(encoding="utf-8")
    said = done("explore", paths["model"], "-o", out, "--max-mb", "0.5").stdout
    assert "open it in a browser" in said
