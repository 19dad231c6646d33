"""vowpalwabbit from PyPI on the same rows: train from a cache, predict, time one example."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

try:
    import vowpalwabbit
except ImportError:
    vowpalwabbit = None

N_SINGLE = 1000


@dataclass(frozen=True)
class VwRun:
    """What a run gave; times in seconds, for all rows, and for one."""

    predicted: np.ndarray
    train_seconds: float
    batch_seconds: float
    single_seconds: float
    n_bytes: int


def version() -> str | None:
    """Return the version of vowpalwabbit, None if it is not installed."""
    return None if vowpalwabbit is None else str(vowpalwabbit.__version__)


def run(
    folder: Path, train: tuple[object, np.ndarray], X_test: object, options: str, n_passes: int
) -> VwRun:
    """Train with class ids 0, 1, … and predict; text is parsed before the clock starts."""
    X, y = train
    cache, test_cache, model = folder / "train.cache", folder / "test.cache", folder / "model"
    if not cache.exists():
        _write_cache(folder / "train.txt", cache, _lines(X, y))
        _write_cache(folder / "test.txt", test_cache, _lines(X_test, np.zeros(X_test.shape[0])))
    command = f"{options} --cache_file {cache} --passes {n_passes} --holdout_off -f {model} --quiet"
    started = time.perf_counter()
    vowpalwabbit.Workspace(command).finish()
    trained = time.perf_counter()
    answers = folder / "answers"
    vowpalwabbit.Workspace(f"-t -i {model} --cache_file {test_cache} -p {answers} --quiet").finish()
    tested = time.perf_counter()
    predicted = np.loadtxt(answers, dtype=np.float64).astype(int) - 1
    return VwRun(
        predicted,
        trained - started,
        tested - trained,
        _single_seconds(model, X_test),
        model.stat().st_size,
    )


def _single_seconds(model: Path, X_test: object) -> float:
    workspace = vowpalwabbit.Workspace(f"-t -i {model} --quiet")
    rows = X_test[:N_SINGLE]
    examples = [workspace.example(line) for line in _lines(rows, np.zeros(rows.shape[0]))]
    started = time.perf_counter()
    for example in examples:
        workspace.predict(example)
    seconds = (time.perf_counter() - started) / len(examples)
    for example in examples:
        workspace.finish_example(example)
    workspace.finish()
    return seconds


def _write_cache(text: Path, cache: Path, lines: Iterator[str]) -> None:
    with text.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
    vowpalwabbit.Workspace(f"--noop -d {text} --cache_file {cache} -k --quiet").finish()
    text.unlink()


def _lines(X: object, y: np.ndarray) -> Iterator[str]:
    rows = sp.csr_matrix(X)
    for i, label in enumerate(y):
        at = slice(rows.indptr[i], rows.indptr[i + 1])
        entries = zip(rows.indices[at], rows.data[at], strict=True)
        yield f"{int(label) + 1} | " + " ".join(f"{f}:{x:.7g}" for f, x in entries)
