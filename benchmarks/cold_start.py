"""Seconds of a first call: with an empty cache of compiled code (cold), and in a second process.

Each task is a process of its own, as a user's first program is. Seconds of the clock depend on what
else runs; those of the processor less. With ``--source``, the src folder of another checkout, the
tasks are also run with that one, and the table shows both, before and after.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import _report

_DATA = """
import numpy as np
rng = np.random.default_rng(0)
y = np.arange(400) % 10
X = (np.eye(10)[y] + 0.5 * rng.normal(size=(400, 10))).astype("float32")
"""
_SPARSE = _DATA + "import scipy.sparse as sp\nX = sp.csr_matrix(X * (X > 0.3))\n"
_FIT = "from thinleaf import {name}\n{name}({settings}).fit(X, y).predict(X)\n"
_README = """
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from thinleaf import AdaptiveSoftmaxTreeClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
clf = AdaptiveSoftmaxTreeClassifier(random_state=0).fit(X_train, y_train)
print("test error", 1 - clf.score(X_test, y_test))
"""
_SAVE = """
from thinleaf import SoftmaxTreeClassifier
SoftmaxTreeClassifier(depth=2).fit(X, y).freeze().save({path!r})
"""
_LOAD = """
import numpy as np, thinleaf
thinleaf.load({path!r}).predict_one(np.zeros(10, "float32"))
"""
_ESTIMATORS = {
    "AdaptiveSoftmaxTreeClassifier": "random_state=0",
    "SoftmaxTreeClassifier": "random_state=0",
    "SoftmaxForestClassifier": "n_estimators=2, random_state=0",
    "RecallTreeClassifier": "random_state=0",
    "LOMTreeClassifier": "random_state=0",
    "OnlineOneVsAllClassifier": "random_state=0",
    "LabelTreeClassifier": "random_state=0",
    "FlatSoftmaxClassifier": "random_state=0",
    "OneVsAllClassifier": "",
    "MACHClassifier": "random_state=0",
    "DoubleSamplingClassifier": "random_state=0",
}
_OWN = Path(__file__).parents[1] / "src"


def tasks(folder: Path) -> dict[str, list[str]]:
    """Return a command for each task; :func:`prepare` makes the files that they need."""
    cli = [sys.executable, "-m", "thinleaf", "predict"]
    code = {
        "README's first example": _README,
        "load + predict_one": _LOAD.format(path=str(folder / "dense.thinleaf")),
    }
    for name, settings in _ESTIMATORS.items():
        code[f"{name}, dense"] = _DATA + _FIT.format(name=name, settings=settings)
    for name in ("AdaptiveSoftmaxTreeClassifier", "LabelTreeClassifier"):
        code[f"{name}, sparse"] = _SPARSE + _FIT.format(name=name, settings="random_state=0")
    commands = {name: [sys.executable, "-c", text] for name, text in code.items()}
    line = [*cli, str(folder / "texts.thinleaf"), str(folder / "one.tsv"), "-q"]
    return {"CLI predict of one line": line} | commands


def prepare(folder: Path, environment: dict[str, str]) -> None:
    """Make a dense model and one of texts."""
    texts = "".join(f"class{i % 5}\tword{i % 5} and w{i % 7} some\n" for i in range(300))
    (folder / "texts.tsv").write_text(texts)
    (folder / "one.tsv").write_text("word3 and w2\n")
    save = _DATA + _SAVE.format(path=str(folder / "dense.thinleaf"))
    train = ["train", str(folder / "texts.tsv"), "-o", str(folder / "texts.thinleaf"), "-q"]
    for command in (["-c", save], ["-m", "thinleaf", *train]):
        subprocess.run([sys.executable, *command], check=True, env=environment)


def measure(command: list[str], environment: dict[str, str]) -> tuple[list[float], list[float]]:
    """Return seconds of the clock and of the processor, cold and warm."""
    clock, processor = [], []
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(2):
            before, started = _processor(), time.perf_counter()
            subprocess.run(
                command,
                check=True,
                env=environment | {"NUMBA_CACHE_DIR": cache},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            clock.append(time.perf_counter() - started)
            processor.append(_processor() - before)
    return clock, processor


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run the tasks and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, help="the src folder of another checkout")
    parser.add_argument("--only", nargs="*", default=[], help="words of the tasks to run")
    arguments = parser.parse_args()
    sources = {"this": _OWN}
    if arguments.source is not None:
        sources = {"before": arguments.source.resolve(), "after": _OWN}
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for task in tasks(Path(name)):
            if arguments.only and not any(word in task for word in arguments.only):
                continue
            for code, source in sources.items():
                folder = Path(name) / code
                environment = os.environ | {"PYTHONPATH": str(source)}
                if not folder.exists():
                    folder.mkdir()
                    prepare(folder, environment)
                clock, processor = measure(tasks(folder)[task], environment)
                rows.append([task, code, *clock, *processor])
                print(*rows[-1], sep=" | ", flush=True)
    headers = ["task", "code", "cold s", "warm s", "cold processor s", "warm processor s"]
    _report.write(
        "cold_start",
        "First calls, with and without compiled code in the cache",
        f"{os.getloadavg()[2]:.1f} processes ran on average while this was measured.",
        _report.table(headers, rows),
    )


if __name__ == "__main__":
    main()
