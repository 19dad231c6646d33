"""Models side by side: figures are those of the models, and what fails does not stop the rest."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from tests.cli.test_cli import done, lines_of, texts, thinleaf_, wrong
from tests.estimator_cases import formats, problem, quick
from thinleaf import (
    AdaptiveSoftmaxTreeClassifier,
    DoubleSamplingClassifier,
    FlatSoftmaxClassifier,
    LabelTreeClassifier,
    MACHClassifier,
    RecallTreeClassifier,
    SoftmaxForestClassifier,
    SoftmaxTreeClassifier,
)
from thinleaf.cli._parameters import MODELS
from thinleaf.explain.frontier import pareto_front, plot_frontier
from thinleaf.measuring import Entry, Split, compare, peers
from thinleaf.measuring import run as running
from thinleaf.measuring.measure import FIGURES, measure, peak_bytes
from thinleaf.measuring.metrics import perplexity, top_k_error
from thinleaf.measuring.report import to_markdown, to_records, to_text
from thinleaf.measuring.run import Result
from thinleaf.measuring.systems import Ours


def split_of(kind: str = "dense", n_classes: int = 6) -> Split:
    X, y = problem(kind=kind, n_classes=n_classes, n_rows=250)
    return Split.of(X[:150], y[:150], X[150:], y[150:])


def text_split() -> Split:
    words, labels = texts(400, 0)
    X = sp.csr_matrix(np.eye(6)[np.arange(400) % 6])
    y = np.array(labels)
    return Split.of(X[:300], y[:300], X[300:], y[300:], words[:300], words[300:])


# -- data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [split_of, lambda: split_of("csr"), text_split])
def test_a_split_comes_back(make, tmp_path):
    split = make()
    split.save(tmp_path)
    again = Split.load(tmp_path)
    for name, value in vars(split).items():
        other = getattr(again, name)
        if sp.issparse(value):
            value, other = value.toarray(), other.toarray()
        np.testing.assert_array_equal(value, other, err_msg=name)


def test_a_part_for_the_rehearsal():
    few = split_of().first(20, 3)
    assert few.X_train.shape[0] == few.y_train.size == 20
    assert set(few.y_train) == {0, 1, 2}


# -- figures ---------------------------------------------------------------------------------------


def test_a_rehearsal_of_a_model_that_chooses_its_rounds():
    Ours("it", AdaptiveSoftmaxTreeClassifier(random_state=0)).rehearse(split_of("dense"))


@formats
@pytest.mark.parametrize(
    "model",
    [
        quick(),
        FlatSoftmaxClassifier(),
        RecallTreeClassifier(random_state=0),
        MACHClassifier(3, 3, random_state=0),
        DoubleSamplingClassifier(random_state=0),
        LabelTreeClassifier(epochs=3, random_state=0),
        SoftmaxForestClassifier(quick(), n_estimators=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_figures_are_those_of_the_model(kind, model):
    split = split_of(kind)
    stages: list[str] = []
    system = Ours("it", model)
    system.rehearse(split)
    figures = measure(system, split, stages.append)
    fitted = clone(model).fit(split.X_train, split.y_train)
    assert stages == ["training", "measuring"]
    assert figures.error == pytest.approx(np.mean(fitted.predict(split.X_test) != split.y_test))
    top = fitted.predict_topk(split.X_test, 5)[0]
    assert figures.top_k_error == pytest.approx(top_k_error(split.y_test, top))
    p = fitted.label_proba(split.X_test, split.y_test)
    assert figures.perplexity == pytest.approx(perplexity(p).value, rel=1e-4)
    for seconds in (figures.train_seconds, figures.single_us, figures.batch_us, figures.bytes):
        assert seconds > 0
    one = system.one()
    singles = [one(*sample) for sample in system.samples(split, 30)]
    np.testing.assert_array_equal(singles, fitted.predict(split.X_test)[:30])


def test_shape_and_coverage_of_a_tree():
    split = split_of()
    clf = quick().fit(split.X_train, split.y_train)
    figures = measure(Ours("tree", quick()), split)
    assert figures.depth == clf.tree_.depth
    assert figures.leaves == clf.tree_.n_leaves
    assert figures.mean_leaf_classes == pytest.approx(clf.tree_.leaf_sizes.mean())
    assert figures.flops == pytest.approx(clf.mean_flops(split.X_test))
    held = clf.label_proba(split.X_test, split.y_test, smooth=False)
    assert figures.coverage == np.mean(held > 0) < 1.0
    assert figures.covered_perplexity == pytest.approx(perplexity(held).value)


def test_a_forest_counts_all_trees():
    split = split_of()
    forest = SoftmaxForestClassifier(quick(), n_estimators=3, random_state=0)
    entry = Entry.of_model("forest", forest)
    figures = measure(Entry(**json.loads(json.dumps(vars(entry)))).system(), split)
    forest.fit(split.X_train, split.y_train)
    assert figures.error == np.mean(forest.predict(split.X_test) != split.y_test)
    assert figures.flops == pytest.approx(forest.mean_flops(split.X_test))
    assert figures.leaves == forest.freeze().n_leaves


def test_label_trees_read_texts():
    split = text_split()
    system = Ours("labels", LabelTreeClassifier(epochs=5, dim=8, random_state=0))
    figures = measure(system, split)
    assert system.samples(split, 2) == [(text,) for text in split.texts_test[:2]]
    assert figures.error < 0.2
    assert figures.depth == system.model.model_.tree.depth
    assert figures.flops == system.model.mean_flops(split.texts_test) > 8


def test_unknown_classes_are_errors_without_probability():
    split = split_of()
    y_test = split.y_test.copy()
    y_test[:10] = -1
    other = Split(split.X_train, split.y_train, split.X_test, y_test)
    figures = [measure(Ours("flat", FlatSoftmaxClassifier()), s) for s in (split, other)]
    assert figures[1].error > figures[0].error
    assert figures[1].top_k_error == pytest.approx(figures[0].top_k_error + 0.1)
    p = FlatSoftmaxClassifier().fit(split.X_train, split.y_train)
    p = p.label_proba(split.X_test[10:], split.y_test[10:])
    assert figures[1].perplexity == pytest.approx(perplexity(p).value)


def test_memory_of_this_process():
    assert peak_bytes() is None or peak_bytes() > 10_000_000


# -- other libraries -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "csr", "text"])
@pytest.mark.parametrize(
    ("library", "number"),
    [(name, i) for name in peers.PEERS for i in range(len(Entry.of_peer(name)))],
)
def test_peers_that_are_installed(kind, library, number):
    split = text_split() if kind == "text" else split_of(kind)
    system = Entry.of_peer(library)[number].system()
    obstacle = system.obstacle(split)
    if obstacle is not None:
        pytest.skip(obstacle)
    figures = measure(system, split)
    assert figures.error < 0.6
    assert figures.top_k_error is None or figures.top_k_error <= figures.error
    assert figures.perplexity is None or figures.perplexity >= 1.0
    assert figures.bytes > 0


def test_a_peer_that_is_missing_says_so(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    obstacle = peers.LightGBM().obstacle(split_of())
    assert obstacle == "lightgbm is not installed: pip install 'thinleaf[bench]'"
    monkeypatch.delenv("PECOS_PYTHON", raising=False)
    assert "PECOS_PYTHON" in peers.Pecos().obstacle(split_of())


def test_peers_that_do_not_suit():
    assert "reads texts" in peers.FastText("hs").unsuited(split_of())
    for system in (peers.NumpyLinear(), peers.SklearnTree()):
        assert "dense" in system.unsuited(split_of("csr"))


def test_rows_for_vowpal_wabbit():
    X = np.array([[0.0, 1.5], [0.0, 0.0]], dtype=np.float32)
    assert list(peers.vw_lines(X, np.array([2, 0]))) == ["3 | 1:1.5", "1 | "]


# -- processes -------------------------------------------------------------------------------------


def test_what_fails_or_takes_too_long_is_a_result():
    entries = [
        Entry.of_model("bad", SoftmaxTreeClassifier(validation_fraction=1e-9)),
        Entry.of_model("endless", LabelTreeClassifier(epochs=10**7, random_state=0)),
        Entry("unknown", "NoSuchClassifier"),
        Entry.of_model("good", FlatSoftmaxClassifier()),
        *Entry.of_peer("fasttext")[:1],
    ]
    said: list[tuple[str, str]] = []
    split = split_of()
    results = list(
        compare(split, entries, limit=3.0, progress=lambda e, stage: said.append((e.name, stage)))
    )
    by_name = {result.name: result for result in results}
    assert list(by_name) == ["bad", "endless", "unknown", "good", "fastText hs"]
    assert by_name["bad"].failed.startswith("ValueError: validation_fraction=1e-09 leaves no rows")
    assert by_name["endless"].failed == "stopped after 3 s"
    assert by_name["unknown"].failed == "ValueError: unknown estimator 'NoSuchClassifier'"
    assert by_name["fastText hs"].failed
    good = by_name["good"]
    assert good.failed is None
    assert set(good.figures) == {*FIGURES, "peak_bytes"}
    expected = measure(Ours("good", FlatSoftmaxClassifier()), split)
    assert good.figures["error"] == expected.error
    assert good.figures["perplexity"] == expected.perplexity
    stages = ["loading", "compiling", "training", "measuring"]
    assert [stage for name, stage in said if name == "good" and "," not in stage] == stages


def test_long_training_says_how_long(monkeypatch):
    monkeypatch.setattr(running, "_BEAT_SECONDS", 0.05)
    entry = Entry.of_model("endless", LabelTreeClassifier(epochs=10**7, random_state=0))
    said: list[str] = []
    list(compare(split_of(), [entry], limit=1.0, progress=lambda _, stage: said.append(stage)))
    assert said[-1].startswith("training, ")
    assert said[-1].endswith(" s")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no /bin/false")
def test_a_process_that_dies_is_a_result(monkeypatch):
    monkeypatch.setattr(running.sys, "executable", "/bin/false")
    entry = Entry.of_model("flat", FlatSoftmaxClassifier())
    (result,) = compare(split_of(), [entry])
    assert result.failed == "the process ended with code 1"


def test_a_process_ends_with_whoever_started_it(tmp_path):
    split_of().save(tmp_path)
    entry = {"name": "endless", "estimator": "LabelTreeClassifier", "peer": None}
    entry["parameters"] = {"epochs": 10**7, "random_state": 0}
    command = [sys.executable, "-m", "thinleaf.measuring.worker", str(tmp_path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        process.stdin.write(json.dumps(entry) + "\n")
        process.stdin.flush()
        while json.loads(process.stdout.readline()) != {"stage": "training"}:
            pass
        process.stdin.close()
        started = time.monotonic()
        process.wait(timeout=60)
        assert time.monotonic() - started < 60


def test_entries_hold_plain_values():
    split = split_of()
    tree = quick().fit(split.X_train, split.y_train).tree_
    with pytest.raises(ValueError, match="structure cannot be written"):
        Entry.of_model("st", SoftmaxTreeClassifier(structure=tree))
    with pytest.raises(ValueError, match="unknown peer 'x': there are numpy"):
        Entry.of_peer("x")


# -- tables and figures ----------------------------------------------------------------------------

RESULTS = [
    Result(
        "tree", {"error": 0.125, "train_seconds": 1.5, "perplexity": math.inf, "bytes": 2_500_000}
    ),
    Result("other | one", {}, "stopped after 1 s"),
]


def test_text():
    head, tree, other = to_text(RESULTS).splitlines()
    assert head.split()[:4] == ["train", "s", "error", "%"]
    assert tree.split()[:5] == ["tree", "1.5", "12.50", "–", "∞"]
    assert other == "other | one  stopped after 1 s"
    assert len(tree) == len(head)


def test_markdown():
    lines = to_markdown(RESULTS).splitlines()
    assert lines[1] == "|---|" + "---:|" * 13
    assert lines[2].startswith("| tree | 1.5 | 12.50 | – | ∞ |")
    assert lines[3].startswith(r"| other \| one | stopped after 1 s |")
    assert {line.replace(r"\|", "").count("|") for line in lines} == {15}


def test_records():
    tree, other = to_records(RESULTS)
    assert (tree["name"], tree["error"], tree["depth"], tree["failed"]) == (
        "tree",
        0.125,
        None,
        None,
    )
    assert (other["failed"], other["error"]) == ("stopped after 1 s", None)
    assert tree.keys() == other.keys() == {"name", "failed", *FIGURES, "peak_bytes"}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8))
def test_the_front_has_what_nothing_beats(values):
    points = {str(i): (float(x), float(y)) for i, (x, y) in enumerate(values)}
    beaten = {
        name
        for name, (x, y) in points.items()
        if any((a <= x and b <= y) and (a, b) != (x, y) for a, b in points.values())
    }
    front = pareto_front(points)
    assert set(front) == points.keys() - beaten
    assert [points[name][0] for name in front] == sorted(points[name][0] for name in front)


def test_the_figure_names_every_model():
    points = {f"model {i}": (1.0 + i, 1.0 / (1 + i)) for i in range(20)}
    ax = plot_frontier(points)
    labels = ax.get_legend_handles_labels()[1]
    assert labels == ["Pareto front", *points]
    assert ax.get_xscale() == "log"
    assert plot_frontier({"one": (1.0, 0.5)}, ax) is ax
    with pytest.raises(ValueError, match="nothing to draw"):
        plot_frontier({})


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    for format in ("tsv", "libsvm"):
        for part, seed in (("train", 0), ("test", 1)):
            path = folder / f"{part}.{format}"
            path.write_text("\n".join(lines_of(format, 150, seed)), encoding="utf-8")
    return folder


def test_comparison_as_json(files):
    result = done(
        "bench", "compare", files / "train.tsv", "--models", "flat,st", "--limit", 60, "--json",
        "--set", "st.validation_fraction=1e-9", "--plot", files / "front.png",
    )  # fmt: skip
    record = json.loads(result.stdout)
    assert (record["train_rows"], record["test_rows"], record["classes"]) == (120, 30, 6)
    assert (record["sparse"], record["test"], record["seed"]) == (True, None, 0)
    flat, tree = record["models"]
    assert (flat["name"], flat["failed"], flat["leaves"]) == ("flat", None, 1)
    assert flat["error"] <= flat["top_k_error"] + 1.0
    assert tree["failed"].startswith("ValueError: validation_fraction")
    assert (files / "front.png").stat().st_size > 1000
    assert "1/2 flat: training" in result.stderr
    assert "1/2 flat: error" in result.stderr
    assert "2/2 st: ValueError" in result.stderr


def test_comparison_on_a_test_file_as_markdown(files):
    arguments = [files / "train.libsvm", "--test", files / "test.libsvm", "--models", "flat"]
    result = done("bench", "compare", *arguments, "--peers", "sklearn", "--markdown", "--quiet")
    lines = result.stdout.splitlines()
    assert result.stderr == ""
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["flat", "scikit-learn tree"]
    X, y = problem_of(files / "train.libsvm")
    X_test, y_test = problem_of(files / "test.libsvm")
    error = np.mean(FlatSoftmaxClassifier().fit(X, y).predict(X_test) != y_test)
    assert lines[2].split("|")[3].strip() == f"{100 * error:.2f}"


def problem_of(path):
    from thinleaf.datasets import label_array, read_examples

    examples = read_examples(path)
    return examples.to_csr().toarray(), label_array(examples.labels)


def test_ctrl_c_leaves_what_is_there(files, monkeypatch):
    def interrupted(split, entries, **options):
        yield Result(entries[0].name, {"error": 0.5, "train_seconds": 1.0})
        raise KeyboardInterrupt

    monkeypatch.setattr("thinleaf.measuring.compare", interrupted)
    result = thinleaf_("bench", "compare", files / "train.tsv", "--models", "flat,st")
    assert result.exit_code == 130
    assert "50.00" in result.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM to catch")
def test_a_comparison_that_is_told_to_end_leaves_nothing_behind(files, tmp_path):
    command = [
        sys.executable, "-m", "thinleaf", "bench", "compare", str(files / "train.tsv"),
        "--models", "label-tree", "--set", "label-tree.epochs=10000000",
    ]  # fmt: skip
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stderr=-1, text=True, env=environment) as process:
        while "training" not in process.stderr.readline():
            assert process.poll() is None
        assert list(tmp_path.glob("thinleaf-*"))
        process.terminate()
        assert process.wait(timeout=60) == 143
    assert not list(tmp_path.glob("thinleaf-*"))


def test_the_same_seed_holds_out_the_same_rows(files, monkeypatch):
    seen = []

    def look(split, entries, **options):
        seen.append(split)
        yield Result("flat", {}, "enough")

    monkeypatch.setattr("thinleaf.measuring.compare", look)
    for seed in (3, 3, 4):
        done("bench", "compare", files / "train.tsv", "--models", "flat", "--seed", seed)
    assert seen[0].texts_test == seen[1].texts_test != seen[2].texts_test
    assert not set(seen[0].y_test) - set(seen[0].y_train)


def test_wrong_comparisons(files):
    start = ["bench", "compare", files / "train.tsv"]
    for options in (
        ["--models", "flat,nothing"],
        ["--peers", "nothing"],
        ["--models", "none"],
        ["--models", "st", "--set", "depth=2"],
        ["--models", "st", "--set", "flat.l1=2"],
    ):
        wrong(*start, *options, code=2)
    assert "has no parameter 'depht'" in wrong(*start, "--models", "st", "--set", "st.depht=2")
    assert "ends in .png" in wrong(*start, "--models", "st", "--plot", "x.txt")
    assert "does not exist" in wrong(*start, "--models", "st", "--plot", "no/such/x.png")
    assert "between 0 and 1" in wrong(*start, "--models", "st", "--held-out", 1.5)
    assert "leaves no rows" in wrong(*start, "--models", "st", "--held-out", 1e-6, "-q")
    assert "standard input" in wrong("bench", "compare", "-", "--test", "-")


def test_figures_need_matplotlib(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    for name in ("axes", "frontier"):
        monkeypatch.delitem(sys.modules, f"thinleaf.explain.{name}", raising=False)
    start = ["bench", "compare", files / "train.tsv", "--models", "flat"]
    message = wrong(*start, "--plot", files / "x.png")
    assert "thinleaf[plot]" in message


def test_all_models_can_be_named():
    from thinleaf.cli.compare import _entries, _parameters

    entries = _entries(_parameters("all", [], 0), "all")
    assert [entry.name for entry in entries[: len(MODELS)]] == list(MODELS)
    assert entries[MODELS.index("huffman")].parameters["tree"] == "huffman"
    assert all(entry.peer for entry in entries[len(MODELS) :])


def test_bench_without_a_verb_is_bench_model(files, tmp_path):
    model = tmp_path / "model"
    done("train", files / "train.tsv", "-o", model, "--model", "st", "--max-sweeps", 1, "-q")
    for start in (["bench"], ["bench", "model"]):
        arguments = [model, files / "test.tsv", "--repeats", 1, "--json", "-q"]
        assert json.loads(done(*start, *arguments).stdout)["classes"] == 6
