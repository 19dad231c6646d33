"""vowpalwabbit from PyPI on the same rows: train from a cache, predict, time one example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from thinleaf.measuring.latency import N_SINGLE, Stopwatch, single_latency
from thinleaf.measuring.peers import vw_lines

try:
    import vowpalwabbit
except ImportError:
    vowpalwabbit = None


@dataclass(frozen=True)
class VwRun:
    """What a run gave; seconds are for all rows, microseconds for one."""

    predicted: np.ndarray
    train_seconds: float
    batch_seconds: float
    single_us: float
    n_bytes: int


def version() -> str | None:
    """Return the version of vowpalwabbit, None if it is not installed."""
    return None if vowpalwabbit is None else str(vowpalwabbit.__version__)


def run(
    folder: Path, train: tuple[object, np.ndarray], X_test: object, options: str, n_passes: int
) -> VwRun:
    """Train with class ids 0, 1, … and predict; text is parsed before the clock starts."""
    X, y = train
    train_text, test_text, model = folder / "train.txt", folder / "test.txt", folder / "model"
    if not train_text.exists():
        _write(train_text, vw_lines(X, y), options)
        _write(test_text, vw_lines(X_test, np.zeros(X_test.shape[0])), options)
    command = f"{options} {_data(train_text)} --passes {n_passes} --holdout_off -f {model} --quiet"
    with Stopwatch() as training:
        vowpalwabbit.Workspace(command).finish()
    answers = folder / "answers"
    with Stopwatch() as testing:
        vowpalwabbit.Workspace(f"-t -i {model} {_data(test_text)} -p {answers} --quiet").finish()
    predicted = np.loadtxt(answers, dtype=np.float64).astype(int) - 1
    return VwRun(
        predicted,
        training.seconds,
        testing.seconds,
        _single_us(model, X_test),
        model.stat().st_size,
    )


def _single_us(model: Path, X_test: object) -> float:
    workspace = vowpalwabbit.Workspace(f"-t -i {model} --quiet")
    rows = X_test[:N_SINGLE]
    examples = [workspace.example(line) for line in vw_lines(rows, np.zeros(rows.shape[0]))]
    latency = single_latency(workspace.predict, [(example,) for example in examples])
    for example in examples:
        workspace.finish_example(example)
    workspace.finish()
    return latency.median


def _write(text: Path, rows: Iterator[str], options: str) -> None:
    """Write rows as text and as VW's cache of it."""
    with text.open("w", encoding="utf-8") as file:
        file.writelines(row + "\n" for row in rows)
    vowpalwabbit.Workspace(f"{options} -t {_data(text)} -k --quiet").finish()


def _data(text: Path) -> str:
    """Return the options to read rows; of the text only its name is used if there is a cache."""
    return f"-d {text} --cache_file {text.with_suffix('.cache')}"
