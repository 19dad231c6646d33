"""Where a command touches files, pipes and what people type: it says so early, or goes on."""

from __future__ import annotations

import json
import os
import select
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from sklearn.utils._param_validation import Interval

import thinleaf
from tests.cli.test_cli import done, lines_of, process, wrong
from thinleaf import estimators
from thinleaf.cli import app
from thinleaf.cli._app import OTHER_NAMES
from thinleaf.cli._parameters import CLASSES, MODELS, names_of_model, parameters_of

QUICK = ["--model", "st", "--depth", "1", "--max-sweeps", "1", "--jobs", "1", "--quiet"]
posix = pytest.mark.skipif(os.name == "nt", reason="files and pipes of POSIX")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "train.tsv"
    path.write_text("\n".join(lines_of("tsv", 60, 0)) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def model(data) -> Path:
    path = data.with_name("model.thinleaf")
    done("train", data, "-o", path, *QUICK)
    return path


# -- outputs ---------------------------------------------------------------------------------------


@posix
def test_training_follows_links_and_keeps_modes(data, tmp_path):
    target, link = tmp_path / "v1.thinleaf", tmp_path / "current"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target.name)
    done("train", data, "-o", link, *QUICK)
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert thinleaf.load(target).n_classes == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["current", "v1.thinleaf"]


@posix
def test_a_pipe_is_left_a_pipe(data, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for option in (["-o", pipe], ["-o", tmp_path / "m", "--checkpoint", pipe]):
        message = wrong("train", data, "-q", *option)
        assert f"{pipe} is a named pipe: give the name of a file" in message
    figure = tmp_path / "front.png"
    os.mkfifo(figure)
    message = wrong("bench", "compare", data, "--models", "st", "--plot", figure)
    assert "is a named pipe" in message
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISFIFO(figure.stat().st_mode)
    clf = thinleaf.AdaptiveSoftmaxTreeClassifier(checkpoint=pipe)
    with pytest.raises(ValueError, match=r"checkpoint: .* is a named pipe"):
        clf.fit([[0.0], [1.0]], [0, 1])


def test_a_model_does_not_go_to_standard_output(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = wrong("train", data, "-o", "-")
    assert message == "error: a model cannot be written to standard output: name a file\n"
    assert list(tmp_path.iterdir()) == []


def test_files_of_a_command_are_different_ones(data, tmp_path):
    both = tmp_path / "m"
    assert "is the data file" in wrong("train", data, "-o", both, "--checkpoint", data)
    assert "is the model file" in wrong("train", data, "-o", both, "--checkpoint", both)


# -- before anything slow --------------------------------------------------------------------------

HEAVY = ("numpy", "scipy", "numba", "sklearn", "matplotlib")

EARLY = {
    "train no.tsv -o m": "no.tsv: No such file",
    "train . -o m": ".: Is a directory",
    "train d.tsv -o no/m": "does not exist: create it first",
    "train d.tsv -o .": "is a directory",
    "train d.tsv -o -": "cannot be written to standard output",
    "train d.tsv -o d.tsv": "is the data file",
    "train d.tsv -o m --checkpoint no/c": "does not exist: create it first",
    "train d.tsv -o m --set contracton=0.5": "did you mean 'contraction'?",
    "train d.tsv -o m --set nonsense=0.5": "it has absent, beam, beta",
    "train d.tsv -o m --depth 3": "no parameter 'depth': use --model st or --model forest",
    "train d.tsv -o m --model lom --max-rounds 3": "use --model ast or --model forest",
    "train d.tsv -o m --trees 3": "no parameter 'n_estimators': use --model forest",
    "train d.tsv -o m --contraction 7": "'contraction' parameter must be above 0 and below 1",
    "train d.tsv -o m --validation 0": "'validation_fraction' parameter must be above 0",
    "train d.tsv -o m --max-seconds nan": "'max_seconds' parameter must be above 0",
    "train d.tsv -o m --temperature 2": "give --beam 2 or more",
    "train d.tsv -o m --temperature 2 --beam auto": "is found with --beam auto: leave it out",
    "train d.tsv -o m --beam wide": "--beam must be a number in 1..1024, or auto, got 'wide'",
    "train d.tsv -o m --beam 0": "--beam must be a number in 1..1024",
    "train d.tsv -o m --beam 1025": "--beam must be a number in 1..1024",
    "train d.tsv -o m --model st --beam auto": "--beam auto is for --model ast",
    "train d.tsv -o m --model forest --beam auto": "--beam auto is for --model ast",
    "train d.tsv -o m --buckets 100": "power of two",
    "train d.tsv -o m --jobs 0": "--jobs must not be 0",
    "train d.tsv -o m --address auto": "--address is that of a Ray cluster: give --executor ray",
    "train d.tsv -o m --model lom --executor joblib": "no parameter 'executor': use --model ast",
    "train d.tsv -o m --memory 4G --model forest": "--memory is for --model ast",
    "train d.tsv -o m --memory 4G --model lom": "no parameter '--memory': use --model ast",
    "train d.tsv -o m --memory little": "--memory must be a number of bytes",
    "train d.tsv -o m --memory 4G --dry-run": "leave out --memory",
    "train d.tsv -o m --model st --depth 99": "--depth",
    "train d.tsv -o m --max-sweeps 0": "--max-sweeps",
    "train d.tsv -o m --ngrams 3-2": "--ngrams",
    "predict no d.tsv": "no: No such file",
    "predict d.tsv no.tsv": "no.tsv: No such file",
    "predict d.tsv --jobs 0": "--jobs must not be 0",
    "evaluate no d.tsv": "no: No such file",
    "inspect no": "no: No such file",
    "bench no d.tsv": "no: No such file",
    "bench compare no.tsv": "no.tsv: No such file",
    "bench compare d.tsv --set st.depht=2": "did you mean 'depth'?",
    "bench compare d.tsv --models st --plot no/x.png": "does not exist: create it first",
}


@pytest.mark.parametrize("command", list(EARLY))
def test_what_is_wrong_is_told_before_slow_imports(command, tmp_path):
    (tmp_path / "d.tsv").write_text("a\tone\nb\ttwo\n")
    code = (
        "import sys; from typer.testing import CliRunner; from thinleaf.cli import app\n"
        "result = CliRunner().invoke(app, sys.argv[1:], env={'COLUMNS': '300'})\n"
        "print(result.exit_code, ' '.join(result.output.split()))\n"
        f"print(*[name for name in {HEAVY} if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, *command.split()],
        capture_output=True, text=True, check=True, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    said, heavy = ended.stdout.splitlines()
    assert EARLY[command] in said
    assert said[0] in "12"
    assert heavy == ""
    assert [path.name for path in tmp_path.iterdir()] == ["d.tsv"]


@pytest.mark.parametrize("model", MODELS)
def test_names_of_parameters_are_those_of_the_classes(model):
    cls = getattr(estimators, CLASSES[model])
    assert parameters_of(CLASSES[model]) == set(cls._get_param_names())
    if model == "forest":
        for given in ("depth", "max_rounds"):
            assert given in names_of_model(model, [given])
        assert "depth" not in names_of_model(model, ["max_rounds"])


def test_ranges_of_options_are_those_of_the_classes():
    options = {
        "max_rounds": ("ast", "max_rounds"),
        "max_sweeps": ("ast", "max_sweeps"),
        "trees": ("forest", "n_estimators"),
        "depth": ("st", "depth"),
        "leaf_classes": ("st", "leaf_classes"),
        "passes": ("recall", "n_passes"),
        "max_candidates": ("recall", "max_candidates"),
    }
    command = typer.main.get_command(app).commands["train"]  # type: ignore[attr-defined]
    for parameter in command.params:
        if parameter.name in options:
            model, name = options.pop(parameter.name)
            allowed = getattr(estimators, CLASSES[model])._parameter_constraints[name]
            interval = next(item for item in allowed if isinstance(item, Interval))
            assert parameter.min == interval.left
            assert parameter.max in (None, interval.right)
    assert not options


# -- data that is not what it should be ------------------------------------------------------------

STRANGE = {
    "csv": ("CSV", "class0,a red thing\nclass1,a green thing\nclass2,a blue, round thing\n"),
    "json": ("JSON", '{"kind": "class0", "about": "a red thing"}\n'),
    "libsvm": ("LIBSVM", "1 1:0.5 3:2\n2 2:1\n"),
}


@pytest.mark.parametrize("kind", list(STRANGE))
def test_lines_of_another_format_are_not_answered(kind, model):
    name, lines = STRANGE[kind]
    message = wrong("predict", model, stdin=lines)
    assert f"look like {name}, but should be tab-separated" in message
    assert "--format tsv" in message
    answers = done("predict", model, "--format", "tsv", stdin=lines).stdout.splitlines()
    assert len(answers) == lines.count("\n")


def test_texts_with_commas_and_braces_are_answered(model):
    text = "a red, green {thing}\n"
    assert done("predict", model, stdin=text).stdout == "class0\n"
    assert done("predict", model, stdin=text * 9).stdout == "class0\n" * 9


def test_a_header_does_not_become_a_class(data, model, tmp_path):
    path = tmp_path / "headed.tsv"
    path.write_text("label\ttext\n" + data.read_text())
    out = tmp_path / "m"
    done("train", path, "-o", out, *QUICK)
    assert thinleaf.load(out).n_classes == 6
    answers = [done("evaluate", model, name, "--json", "-q").stdout for name in (path, data)]
    assert len({json.loads(answer)["error"] for answer in answers}) == 1
    done("train", path, "-o", out, "--format", "tsv", *QUICK)
    assert thinleaf.load(out).n_classes == 7


def test_a_text_file_is_no_model(data, model):
    for arguments in (["predict", data], ["evaluate", data, model], ["inspect", data]):
        message = wrong(*arguments)
        assert f"{data} is not a model file: it looks like text" in message
        assert f"`thinleaf train {data} -o model.thinleaf`" in message


# -- streams ---------------------------------------------------------------------------------------


def ask(running: subprocess.Popen[bytes], line: bytes) -> bytes:
    """Write a line to a process and return its answer, which must come before more is written."""
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(line)
    running.stdin.flush()
    assert select.select([running.stdout], [], [], 300)[0], f"no answer to {line!r}"
    return running.stdout.readline()


@posix
def test_every_line_is_answered_at_once(model):
    with process(
        "predict", model, "--on-error", "skip", "-q", stdin=subprocess.PIPE, bufsize=0
    ) as running:
        try:
            assert ask(running, b"\n") == b"\n"
            assert ask(running, b"a red green thing\n") == b"class0\n"
            assert ask(running, b"  \n") == b"\n"
            assert ask(running, b"not UTF-8 \xff\n") == b"\n"
            assert ask(running, b"a blue round thing\n") == b"class2\n"
        finally:
            running.stdin.close()
        assert running.stdout.read() == b""
        assert running.wait(timeout=300) == 0


@posix
def test_a_model_file_may_be_cut_short_while_it_is_used(model, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(model.read_bytes())
    with process("predict", path, stdin=subprocess.PIPE, bufsize=0) as running:
        try:
            assert ask(running, b"a red green thing\n") == b"class0\n"
            os.truncate(path, 0)
            assert ask(running, b"a blue round thing\n") == b"class2\n"
        finally:
            running.stdin.close()
        assert running.wait(timeout=300) == 0


# -- what people type ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("compare", "x"), "thinleaf bench compare"),
        (("trainn", "x"), "train"),
        (("fit", "x"), "thinleaf train"),
        (("bench", "comparr", "x"), "compare"),
    ],
)
def test_verbs_that_are_nearly_right(arguments, hint):
    assert f"Did you mean '{hint}'?" in " ".join(wrong(*arguments, code=2).split())


def test_other_names_are_of_verbs_that_exist():
    for other, verb in OTHER_NAMES.items():
        done(*verb.split(), "--help")
        assert f"'thinleaf {verb}'" in " ".join(wrong(other, code=2).split())


def completed(shell: str, action: str, words: str = "") -> str:
    """Return what a shell gets that asks for completion."""
    variables = {
        "_THINLEAF_COMPLETE": f"{action}_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    command = [sys.executable, "-m", "thinleaf"]
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 120, "check": False}
    return subprocess.run(command, env=os.environ | variables, **options).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    assert "--install-completion" in done("--help").stdout
    assert "_THINLEAF_COMPLETE" in completed(shell, "source")
    for words, expected in (
        ("thinleaf ev", ["evaluate"]),
        ("thinleaf bench c", ["compare"]),
        ("thinleaf train --weights f", ["float16", "float32"]),
    ):
        found = completed(shell, "complete", words)
        assert all(name in found for name in expected)
        assert "predict" not in found


@pytest.mark.parametrize(
    "verb", ["", "train", "predict", "evaluate", "inspect", "explore", "warmup", "demo", "bench",
             "bench model", "bench compare"],
)  # fmt: skip
def test_help_has_no_names_of_python_types(verb):
    shown = done(*verb.split(), "--help").stdout
    for name in (
        "<str>",
        "<int>",
        "<int ",
        "<float>",
        "<float ",
        "<bool>",
        "<list",
        "INTEGER",
        "TEXT",
        "BOOLEAN",
    ):
        assert name not in shown


def test_quiet_commands_compile_without_a_note():
    code = (
        "import os, sys; sys.argv = ['thinleaf', 'predict', 'none.thinleaf', '-q']\n"
        "from thinleaf.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print(os.environ['THINLEAF_SAY_COMPILING'])\n"
    )
    without = {k: v for k, v in os.environ.items() if k != "THINLEAF_SAY_COMPILING"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=without, timeout=120
    )
    assert done.stdout == "0\n"
