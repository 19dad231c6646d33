"""Trees that adapt themselves: nothing set but the seed, beside other libraries that are tuned.

Ours are ``AdaptiveSoftmaxTreeClassifier(random_state=s, n_jobs=1)`` and, with ``--forest``,
``SoftmaxForestClassifier(random_state=s, n_jobs=1)``: each on one path a tree, and with the beam
that it chose in ``fit``. Other libraries have a small grid each, ``benchmarks._tuned``, chosen on a
fifth of the training part. One thread everywhere; a fitted model sees the test rows once.

Results are written after each fit, and fits that a result has are not made again: ``--anew`` makes
them. ``--held-out`` takes a fifth of the training part as the test part, and writes nothing.
PECOS wants ``PECOS_PYTHON``, an interpreter that has it; embedded sets are made by
``benchmarks.embed``.
"""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._data import (
    DENSE_SETS,
    EMBEDDED_SETS,
    TEXT_SETS,
    as_split,
    available,
    held_out,
    load,
)
from benchmarks._report import RESULTS, arguments, read, table, write
from benchmarks._tuned import HELD_OUT, SLOW, contenders, shown, tuned
from thinleaf import AdaptiveSoftmaxTreeClassifier, FrozenTree, SoftmaxForestClassifier
from thinleaf.arrays.rows import as_rows
from thinleaf.measuring import Split
from thinleaf.measuring.latency import N_SINGLE, Stopwatch, prepared_rows, single_latency
from thinleaf.measuring.systems import Ours
from thinleaf.model.cost import frozen_mean_flops

SETS = (*DENSE_SETS, *TEXT_SETS, *EMBEDDED_SETS)
N_BINS = 15
FALLBACK_BEAM = 4
"""Of estimators that choose none."""

OURS = {
    False: (AdaptiveSoftmaxTreeClassifier, "AST"),
    True: (SoftmaxForestClassifier, "forest, 8 trees"),
}
ONE_PATH = "one path"

RECORD = [
    "system", "seed", "error %", "fit s", "depth", "leaves", "FLOPs", "bytes", "single µs", "beam",
    "temperature", "ECE", "outside, expected %", "outside, observed %", "settings", "tried",
]  # fmt: skip
"""What is kept of each fit."""

MEANS = [name for name in RECORD[3:] if name not in ("settings", "tried")]
SUMMARY = ["system", "seeds", "error %", "± rows", "± seeds", *MEANS, "settings"]

Record = dict[str, Any]


# -- ours ------------------------------------------------------------------------------------------


def calibration_error(confidence: np.ndarray, correct: np.ndarray) -> float:
    """Return the expected calibration error of the top label: bins of equal width."""
    at = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gaps = np.bincount(at, weights=confidence - correct, minlength=N_BINS)
    return float(np.abs(gaps).sum() / correct.size)


def outside_mass(model: FrozenTree, split: Split) -> tuple[float, float]:
    """Return the mass that a model expects outside its leaves, and the share of rows found there.

    Of a beam and of a forest, outside is what none of the leaves holds. Classes that the training
    part lacks are outside.
    """
    P = model.predict_proba_sparse(split.X_test)
    expected = 1.0 - float(P.sum()) / split.y_test.size
    rows = np.repeat(np.arange(split.y_test.size), np.diff(P.indptr))
    inside = np.zeros(split.y_test.size, dtype=bool)
    inside[rows[P.indices == split.y_test[rows]]] = True
    return expected, 1.0 - float(inside.mean())


def with_beam(model: Any) -> tuple[str, FrozenTree]:
    """Return a fitted model with the beam that it chose; if it chooses none, with one of 4."""
    try:
        return "its own beam", model.freeze(beam="auto")
    except (TypeError, ValueError):
        if hasattr(model, "beam_"):
            raise
        return f"beam {FALLBACK_BEAM}, none of its own", model.freeze(beam=FALLBACK_BEAM)


def figures(model: FrozenTree, split: Split) -> Record:
    """Return what is measured of a deployed model."""
    top, confidence = model.predict_topk(split.X_test, 1)
    correct = top[:, 0] == split.y_test
    expected, observed = outside_mass(model, split)
    samples = prepared_rows(split.X_test, min(N_SINGLE, split.y_test.size))
    return {
        "error %": 100 * float(1.0 - correct.mean()),
        "depth": int(model.packed.node_depth.max()),
        "leaves": model.n_leaves,
        "FLOPs": frozen_mean_flops(model, as_rows(split.X_test)) if model.beam == 1 else "",
        "bytes": model.nbytes,
        "single µs": single_latency(model.predict_one, samples).median,
        "beam": model.beam,
        "temperature": model.temperature if model.beam > 1 else "",
        "ECE": calibration_error(confidence[:, 0], correct),
        "outside, expected %": 100 * expected,
        "outside, observed %": 100 * observed,
    }


def ours(split: Split, seed: int, forest: bool) -> Iterator[Record]:
    """Yield the records of one fit: one path, and its own beam."""
    kind, name = OURS[forest]
    model = kind(random_state=seed, n_jobs=1)
    Ours(name, model).rehearse(split)
    with Stopwatch() as watch:
        model.fit(split.X_train, split.y_train)
    for way, frozen in ((ONE_PATH, model.freeze()), with_beam(model)):
        found = figures(frozen, split)
        yield {"system": f"{name}, {way}", "seed": seed, "fit s": watch.seconds, **found}


# -- others ----------------------------------------------------------------------------------------


def peers(name: str, split: Split, known: set[str]) -> Iterator[Record]:
    """Yield the records of the other libraries that are installed, but for those that are known."""
    for contender in contenders(name, split):
        if contender.name in known:
            continue
        obstacle = contender.make().obstacle(split)
        if obstacle is not None:
            print(f"{contender.name} is left out: {obstacle}", flush=True)
            continue
        try:
            for system, settings, tried, error, seconds in tuned(contender, split):
                yield {
                    "system": system, "seed": 0, "error %": 100 * error, "fit s": seconds,
                    "settings": shown(settings), "tried": tried,
                }  # fmt: skip
        except Exception:  # one that fails is left out, and tried again the next time
            traceback.print_exc()


# -- the report ------------------------------------------------------------------------------------


def summary(records: list[Record], n_test: int) -> list[list[Any]]:
    """Return a row for each system: means over seeds, with standard errors."""
    rows = []
    for system in dict.fromkeys(record["system"] for record in records):
        own = [record for record in records if record["system"] == system]
        errors = np.array([record["error %"] for record in own]) / 100
        p = float(errors.mean())
        seeds = 100 * float(errors.std(ddof=1)) / len(own) ** 0.5 if len(own) > 1 else ""
        over_rows = 100 * (p * (1 - p) / n_test) ** 0.5
        means = [_mean([record.get(name, "") for record in own]) for name in MEANS]
        settings = own[0].get("settings", "")
        rows.append([system, len(own), 100 * p, over_rows, seeds, *means, settings])
    return rows


def _mean(values: list[Any]) -> Any:
    numbers = [value for value in values if value != ""]
    if not numbers:
        return ""
    return numbers[0] if len(set(numbers)) == 1 else float(np.mean(numbers))


def report(name: str, split: Split, records: list[Record]) -> None:
    """Write what is known so far."""
    slow = SLOW.get(name, ())
    rows, columns = split.X_train.shape
    write(
        "adapts",
        f"Trees that adapt themselves: {name}",
        f"{rows:,} training and {split.y_test.size:,} test rows, {columns:,} features, "
        f"{split.n_classes:,} classes; one thread. Ours have nothing set but the seed; FLOPs are "
        "those of one path a tree. Standard errors are those of a mean over test rows, and over "
        f"seeds. ECE: of the top label, {N_BINS} bins. Outside: what leaves expect of classes that "
        "they do not hold, and the share of test rows that have such a class. The others' settings "
        f"have the fewest errors on a fifth of the training part, of those in the last column "
        "below (errors there in percent); seconds are those of the last fit alone."
        + (f" Not run, for the time that it takes: {', '.join(slow)}." if slow else ""),
        table(SUMMARY, summary(records, split.y_test.size)),
        "Each fit:",
        table(RECORD, [[record.get(column, "") for column in RECORD] for record in records]),
        suffix=name,
    )


def known_records(name: str) -> list[Record]:
    """Return what the result of a set has."""
    if not (RESULTS / f"adapts_{name}.json").exists():
        return []
    part = read(f"adapts_{name}").tables[-1]
    return [dict(zip(part.headers, row, strict=True)) for row in part.rows]


def line(name: str, record: Record, n_test: int) -> str:
    """Return a record as a line."""
    p = record["error %"] / 100
    more = [
        f"{column} {value:.4g}" if isinstance(value, float) else f"{column} {value}"
        for column, value in record.items()
        if column not in ("system", "seed", "error %", "fit s") and value != ""
    ]
    return (
        f"{name}: {record['system']}, seed {record['seed']}: {100 * p:.2f} ± "
        f"{100 * (p * (1 - p) / n_test) ** 0.5:.2f} %, {record['fit s']:.1f} s; {'; '.join(more)}"
    )


def is_ours(record: Record) -> bool:
    """Return whether a record is of one of our models."""
    return record["system"].startswith(tuple(name for _, name in OURS.values()))


def run(name: str, options: argparse.Namespace) -> None:
    """Measure a set."""
    data = load(options.data, name)
    split = as_split(held_out(data, HELD_OUT) if options.held_out else data)
    records = [] if options.held_out else known_records(name)
    with_ours, with_peers = not options.peers_only, not options.ours_only
    if options.anew:
        again = {True: with_ours, False: with_peers}
        records = [record for record in records if not again[is_ours(record)]]

    def keep(found: Iterator[Record]) -> None:
        for record in found:
            records.append(record)
            print(line(name, record, split.y_test.size), flush=True)
            if not options.held_out:
                records.sort(key=lambda record: not is_ours(record))
                report(name, split, records)

    fits = [(forest, seed) for forest in (False, True) for seed in options.seeds]
    for forest, seed in fits if with_ours else ():
        own = [
            record for record in records
            if record["system"].startswith(OURS[forest][1]) and record["seed"] == seed
        ]  # fmt: skip
        if (options.forest or not forest) and len(own) < 2:
            records = [record for record in records if record not in own]
            keep(ours(split, seed, forest))
    if with_peers:
        keep(peers(name, split, {record["system"] for record in records}))


def main() -> None:
    """Measure the sets that the data directory holds."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="SEED")
    parser.add_argument("--forest", action="store_true", help="forests of 8 trees, too")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--peers-only", action="store_true")
    only.add_argument("--ours-only", action="store_true")
    parser.add_argument("--held-out", action="store_true", help="on held-out training rows")
    parser.add_argument("--anew", action="store_true", help="make fits that a result has again")
    options = parser.parse_args()
    with threadpool_limits(1):
        for name in options.sets:
            if available(options.data, name):
                run(name, options)
            else:
                print(f"skipped {name}: it is not in the data directory", flush=True)


if __name__ == "__main__":
    main()
