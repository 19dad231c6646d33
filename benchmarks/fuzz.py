"""Mutated model files: each must be refused with a ModelFileError, or work.

Good files are mutated at random, loaded and, if they load, used. That happens in processes of their
own, many files in each: a crash, a hang or a large allocation ends one and is counted, and the file
is kept. A case depends on the seed and its number only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks._mutations import MUTATIONS, mutated
from benchmarks._report import table, write
from thinleaf import (
    AdaptiveSoftmaxTreeClassifier,
    FrozenTextTree,
    FrozenTree,
    LOMTreeClassifier,
    ModelFileError,
    RecallTreeClassifier,
    SoftmaxForestClassifier,
    SoftmaxTreeClassifier,
    TextClassifier,
    load,
    load_estimator,
)
from thinleaf.estimators._base.storable import training_section
from thinleaf.model.file_parts import Section
from thinleaf.text.columns import Columns
from thinleaf.text.features import TextFeatures

OUTCOMES = ["refused at load", "refused at use", "accepted", "crash", "hang", "memory", "other"]
MAX_GROWTH = 200 * 2**20
"""More bytes than this for one small file count as too much memory."""
MAX_WIDTH = 10_000
"""Wider models are tried with sparse rows only: dense ones would be the caller's memory."""
BATCH = 10_000
PATIENCE = 60.0


# -- good files ------------------------------------------------------------------------------------


def good_files() -> list[bytes]:
    """Return model files of a few kilobytes, of every layout, type of weights, kind of labels."""
    rng = np.random.default_rng(0)
    y = np.arange(240) % 8
    X = (2 * rng.normal(size=(8, 6))[y] + rng.normal(size=(240, 6))).astype(np.float32)
    options = {"depth": 2, "leaf_classes": 4, "max_sweeps": 3, "random_state": 0}
    names = np.array(["a", "é", "漢字", "", "e", "f f", "g", "long label"])
    dense = SoftmaxTreeClassifier(**options).fit(X, names[y]).freeze()
    even = SoftmaxTreeClassifier(**options, zero_probability="epsilon", epsilon=0.01).fit(X, y)
    flags = SoftmaxTreeClassifier(**options | {"leaf_classes": 1}).fit(X, y > 3)
    words = np.array([f"w{i}" for i in range(40)])
    texts = [" ".join([*rng.choice(words, 4), *words[5 * c : 5 * c + 3]]) for c in y.tolist()]
    features = TextFeatures(min_df=1, ngram_range=(1, 1)).fit(texts)
    grown = AdaptiveSoftmaxTreeClassifier(max_rounds=1, max_sweeps=3, random_state=0)
    grown.fit(features.transform(texts), y)
    grown.history_ = []  # it has seconds: every run is to make the same files
    sparse = FrozenTree(
        grown.freeze().packed, y[:8] / 2, feature_names=features.feature_names(), beam=3
    )
    columns = TextClassifier(
        SoftmaxTreeClassifier(**options),
        TextFeatures("both", max_features=20),
        text_columns=["a", "b"],
        numeric_columns=["c"],
        random_state=0,
    ).fit({"a": texts, "b": texts[::-1], "c": X[:, 0]}, y)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "model")
        grown.save(path, trainable=True)
        learned = [
            RecallTreeClassifier(4, random_state=0).fit(features.transform(texts), y),
            LOMTreeClassifier(random_state=0, hash_bits=5).fit(X, names[y]),
            SoftmaxForestClassifier(SoftmaxTreeClassifier(**options), 2, random_state=0).fit(X, y),
        ]
        for tree in learned[-1].estimators_:
            tree.history_ = []
        models = [
            dense, dense.quantized("int8"), even.freeze(weights="float16", beam=2),
            flags.freeze(beam=2), sparse.quantized("int8"),
            load(path).with_sections(text=Section(*features.to_arrays())),
            columns.fit_rejection({"a": texts, "b": texts, "c": X[:, 0]}, y).freeze(),
            *(clf.freeze().with_sections(training=training_section(clf)) for clf in learned),
        ]  # fmt: skip
        contents = []
        for model in models:
            model.save(path)
            contents.append(path.read_bytes())
    return contents


# -- one file --------------------------------------------------------------------------------------


def use(model: FrozenTree, path: Path) -> None:
    """Use all that a file offers."""
    width = model.n_features
    rng = np.random.default_rng(0)
    idx = np.unique(rng.integers(width, size=4)) if width else np.empty(0, int)
    values = rng.normal(size=idx.size).astype(np.float32)
    sparse = sp.csr_array((values, idx, [0, idx.size]), shape=(1, width))
    batches = [sp.vstack([sparse, -sparse, 0 * sparse], format="csr")]
    if width <= MAX_WIDTH:
        batches.append(rng.normal(size=(3, width)).astype(np.float32))
    k = min(3, model.n_classes)
    for one in (model.with_beam(1), model.with_beam(3), model):
        for X in batches:
            one.predict(X)
            one.predict_topk(X, k)
            one.predict_proba(X)
        one.predict_proba_sparse(batches[-1])
        one.predict_one(idx, values)
        one.apply(batches[0])
        if width <= MAX_WIDTH:
            one.predict_one(batches[1][0])
    if model.packed.weights == "float32":
        model.quantized("int8")
    if "training" in model.sections:
        estimator = load_estimator(path)
        estimator.predict(batches[0])
        if hasattr(estimator, "partial_fit"):
            estimator.partial_fit(batches[0], np.resize(estimator.classes_, 3))
    if isinstance(model, FrozenTextTree) and "columns" in model.sections:
        use_columns(model)
    if "text" in model.sections:
        section = model.sections["text"]
        try:
            TextFeatures.from_arrays(section.arrays, section.metadata).transform(["w1 w2"])
        except ValueError as error:  # also from a good file with another section
            if "text features" not in str(error) and "must be" not in str(error):
                raise


def use_columns(model: FrozenTextTree) -> None:
    """Answer a table, and say what is to be rejected."""
    made = model.input
    assert isinstance(made, Columns)
    table: dict[str, list[Any]] = {name: ["w1 w2", "", "é"] for name in made.texts}
    table |= {name: [0.0, 1.0, -1.0] for name in made.numeric}
    try:
        model.predict(table)
        if model.rejection is not None:
            model.rejects(table, 0.5)
    except ValueError as error:  # numbers that a scale makes too large, which the table has not
        if "too large for float32" not in str(error):
            raise


def outcome_of(path: Path) -> tuple[str, str]:
    """Return what becomes of a file, and the error if that is none that it should be."""
    stage = "refused at load"
    try:
        model = load(path)
        stage = "refused at use"
        use(model, path)
    except ModelFileError:
        return stage, ""
    except MemoryError as error:
        return "memory", repr(error)
    except Exception as error:
        return "other", f"{type(error).__name__}: {error}"
    return "accepted", ""


def case(seed: int, number: int, good: Sequence[bytes]) -> tuple[str, bytes]:
    """Return kind and content of a mutated file."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return mutated(np.random.default_rng([seed, number]), good)


# -- a process of many files -----------------------------------------------------------------------


@dataclass
class Tally:
    """What became of some files."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    errors: dict[str, str] = field(default_factory=dict)
    growth: int = 0
    slowest: float = 0.0

    def add(self, other: Tally) -> None:
        """Add what another process counted."""
        self.counts += other.counts
        self.errors |= other.errors
        self.growth = max(self.growth, other.growth)
        self.slowest = max(self.slowest, other.slowest)


def work(directory: Path, seed: int, begin: int, end: int) -> None:
    """Try some files; write down before each which one it is, and what became of it after."""
    warnings.simplefilter("error")
    good = [path.read_bytes() for path in sorted(directory.glob("good-*"))]
    own = directory / f"{begin}-{end}"
    own.mkdir()
    path = own / "case"
    for content in good:
        path.write_bytes(content)
        if outcome_of(path)[0] != "accepted":
            raise SystemExit(f"a good file was refused: {outcome_of(path)}")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 4 * MAX_GROWTH
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    before = _peak()
    with (own / "log").open("wb", buffering=0) as log:
        for number in range(begin, end):
            kind, content = case(seed, number, good)
            path.unlink()
            path.write_bytes(content)
            log.write(struct.pack("<q", number))
            started = time.perf_counter()
            outcome, error = outcome_of(path)
            seconds = time.perf_counter() - started
            after = _peak()
            if after - before > MAX_GROWTH:
                outcome, error = "memory", f"{after - before} bytes"
            record = [kind, outcome, error, after - before, seconds]
            before = after
            text = json.dumps(record).encode()
            log.write(struct.pack("<q", len(text)) + text)
            if outcome in ("memory", "other"):
                shutil.copy(path, directory / f"kept-{number}")


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def read_log(path: Path) -> tuple[Tally, int | None]:
    """Return what a process wrote down, and the file that it did not come back from."""
    tally = Tally()
    content = path.read_bytes() if path.exists() else b""
    at = 0
    while at < len(content):
        number = struct.unpack_from("<q", content, at)[0]
        if len(content) < at + 16:
            return tally, number
        length = struct.unpack_from("<q", content, at + 8)[0]
        kind, outcome, error, growth, seconds = json.loads(content[at + 16 : at + 16 + length])
        at += 16 + length
        tally.counts[kind, outcome] += 1
        if error:
            tally.errors[f"{outcome}: {error}"[:300]] = f"kept-{number}"
        tally.growth, tally.slowest = max(tally.growth, growth), max(tally.slowest, seconds)
    return tally, None


def run_batch(directory: Path, seed: int, begin: int, end: int, good: Sequence[bytes]) -> Tally:
    """Run a process, and another one after each file that ends it."""
    total = Tally()
    while begin < end:
        own = directory / f"{begin}-{end}"
        command = [sys.executable, "-m", "benchmarks.fuzz", "--worker", str(directory)]
        process = subprocess.Popen(
            [*command, "--seed", str(seed), "--begin", str(begin), "--end", str(end)],
            stdout=subprocess.DEVNULL,
        )
        ended = _wait(process, own / "log")
        tally, unfinished = read_log(own / "log")
        total.add(tally)
        if unfinished is None:
            if process.returncode != 0:
                raise SystemExit(f"a worker ended with {process.returncode} between two files")
            shutil.rmtree(own)
            break
        shutil.copy(own / "case", directory / f"kept-{unfinished}")
        kind = case(seed, unfinished, good)[0]
        outcome = "crash" if ended else "hang"
        total.counts[kind, outcome] += 1
        total.errors[f"{outcome}: {process.returncode}"] = f"kept-{unfinished}"
        begin = unfinished + 1
    return total


def _wait(process: subprocess.Popen[bytes], log: Path) -> bool:
    """Wait for a process; end one that has not finished a file for long. False if so."""
    size, since = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(0.2)
        now = log.stat().st_size if log.exists() else -1
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > PATIENCE + (240.0 if size < 0 else 0.0):
            process.kill()
            process.wait()
            return False
    return True


# -- the whole -------------------------------------------------------------------------------------


def main() -> None:
    """Try many files and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=200_000, help="how many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, help="directory for files that did what they must not")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--begin", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--end", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.seed, options.begin, options.end)
        return
    from concurrent.futures import ThreadPoolExecutor

    good = good_files()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(options.processes) as pool:
        directory = Path(name)
        for i, content in enumerate(good):
            (directory / f"good-{i}").write_bytes(content)
        begins = range(0, options.files, BATCH)
        total = Tally()
        for tally in pool.map(
            lambda begin: run_batch(
                directory, options.seed, begin, min(begin + BATCH, options.files), good
            ),
            begins,
        ):
            total.add(tally)
            print(dict(_outcomes(total)), flush=True)
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            for path in directory.glob("kept-*"):
                shutil.copy(path, options.keep)
    report(total, options.files, good, time.perf_counter() - started)


def _outcomes(tally: Tally) -> Counter[str]:
    out: Counter[str] = Counter()
    for (_, outcome), n in tally.counts.items():
        out[outcome] += n
    return out


def report(tally: Tally, n_files: int, good: Sequence[bytes], seconds: float) -> None:
    """Print and write the table."""
    rows = []
    for kind in MUTATIONS:
        counts = [tally.counts[kind, outcome] for outcome in OUTCOMES]
        rows.append([kind, sum(counts), *counts])
    totals = _outcomes(tally)
    rows.append(["all", sum(totals.values()), *(totals[outcome] for outcome in OUTCOMES)])
    sizes = ", ".join(f"{len(content):,}" for content in good)
    errors = [f"- `{error}` ({name})" for error, name in sorted(tally.errors.items())]
    write(
        "fuzz",
        "Mutated model files",
        f"{n_files:,} files made from good ones of {sizes} bytes by random changes, loaded and, if "
        "they load, used: classes, top k and probabilities of dense and sparse rows with beams of "
        "1, 3 and the file's own, leaves, one sample, smaller weights, the estimator and the text "
        "features that a file carries. Refused is a `ModelFileError`; other is any other exception "
        "or a warning; memory is more than "
        f"{MAX_GROWTH // 2**20} MB; a hang is {PATIENCE:.0f} s.",
        table(["change", "files", *OUTCOMES], rows),
        f"In {seconds:.0f} s. Slowest file: {tally.slowest:.2f} s. Largest growth of a process "
        f"by one file: {tally.growth / 2**20:.1f} MB.",
        *(["\n".join(errors)] if errors else []),
    )


if __name__ == "__main__":
    main()
