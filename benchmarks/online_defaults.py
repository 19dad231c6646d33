"""Online trees without a parameter, beside vowpalwabbit's and one-against-all, which are tuned.

``RecallTreeClassifier(random_state=seed).fit`` chooses everything by progressive loss. What it is
compared with gets a small grid: vowpalwabbit's recall tree its size of table, rate, candidates and
passes, one-against-all its rate; the best on a tenth of the training rows, held out, is trained on
all of them. A ladder of rates or bits goes on while its end is the best. LOMTree has as many
routers here as in all tables. Runs that the result has are not run again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _vw
from benchmarks._data import Dataset, available, held_out, load
from benchmarks._records import Record, add_options, all_runs, known, means, missing
from benchmarks._report import arguments, write
from benchmarks.online import LOM_ROUTERS
from thinleaf import LOMTreeClassifier, OnlineOneVsAllClassifier, RecallTreeClassifier
from thinleaf.measuring.latency import Stopwatch

NAME = "online_defaults"
SETS = ("letter", "icd10cm", "fontglyph1000", "bible_verse")
MOST_STEPS = 4
COLUMNS = [
    "set", "system", "seed", "test error %", "± rows", "train s", "chosen", "tried",
]  # fmt: skip
SYSTEMS = ("Recall Tree", "Recall Tree, one path", "LOMTree", "one-against-all", "VW recall tree")

VwSettings = dict[str, Any]


def shuffled(data: Dataset, seed: int) -> Dataset:
    """Return the training rows in a random order."""
    order = np.random.default_rng(1 + seed).permutation(data.y_train.size)
    return Dataset(data.name, data.X_train[order], data.y_train[order], data.X_test, data.y_test)


def ladder(
    start: float, factor: float, loss: Callable[[float], float], most: float = np.inf
) -> tuple[float, int]:
    """Return the value with the lowest loss, and how many were tried: no end of a ladder wins."""
    losses = {value: loss(value) for value in (start / factor, start, start * factor)}
    for _ in range(MOST_STEPS):
        best = min(losses, key=losses.__getitem__)
        if best == max(losses) and best * factor <= most:
            losses[best * factor] = loss(best * factor)
        elif best == min(losses):
            losses[best / factor] = loss(best / factor)
        else:
            break
    return min(losses, key=losses.__getitem__), len(losses)


def vw_error(data: Dataset, settings: VwSettings, folder: Path) -> tuple[float, float]:
    """Return the test error of vowpalwabbit's recall tree, and the seconds of its training."""
    classes, y = np.unique(data.y_train, return_inverse=True)
    options = (
        f"--recall_tree {classes.size} -b {settings['b']} --loss_function logistic "
        f"-l {settings['l']:g} --max_candidates {settings['candidates']}"
    )
    run = _vw.run(folder, (data.X_train, y), data.X_test, options, settings["passes"])
    predicted = classes[np.clip(run.predicted, 0, classes.size - 1)]
    return float(np.mean(predicted != data.y_test)), run.train_seconds


def tuned_vw(data: Dataset, most_bits: int) -> tuple[VwSettings, int]:
    """Return the settings with the fewest errors on held-out rows, one after the other."""
    held = held_out(data, 0.1)
    n = data.n_classes
    settings: VwSettings = {"b": 24, "l": 1.0, "candidates": 4 * int(np.ceil(np.log2(n)))}
    settings["passes"], tried = 3, 0
    with tempfile.TemporaryDirectory() as folder:

        def error(**change: Any) -> float:
            nonlocal tried
            tried += 1
            found = vw_error(held, settings | change, Path(folder))[0]
            print(data.name, "vw", settings | change, f"{100 * found:.2f} %", flush=True)
            return found

        losses = {b: error(b=b) for b in range(22, most_bits + 1, 2)}
        settings["b"] = min(losses, key=losses.__getitem__)
        settings["l"] = ladder(1.0, 2.0, lambda rate: error(l=rate))[0]
        some = sorted({settings["candidates"], 16, 64, min(n, 128)})
        losses = {c: error(candidates=c) for c in some}
        settings["candidates"] = min(losses, key=losses.__getitem__)
        losses = {p: error(passes=p) for p in (1, 3, 6, 12, 20)}
        settings["passes"] = min(losses, key=losses.__getitem__)
    return settings, tried


def measure(data: Dataset, system: str, seed: int, most_bits: int) -> Record:
    """Return one run."""
    data, tried = shuffled(data, seed), 0
    if system == "VW recall tree":
        settings, tried = tuned_vw(data, most_bits)
        with tempfile.TemporaryDirectory() as folder:
            error, seconds = vw_error(data, settings, Path(folder))
        chosen = str(settings)
    else:
        clf, tried = our(data, system, seed)
        with Stopwatch() as clock:
            clf.fit(data.X_train, data.y_train)
        error, seconds = 1.0 - clf.score(data.X_test, data.y_test), clock.seconds
        chosen = ""
        if isinstance(clf, RecallTreeClassifier):
            tried = len(clf.race_)
            chosen = str(clf.settings_ | {"passes": clf.n_passes_, "beam": clf.beam_})
        elif isinstance(clf, OnlineOneVsAllClassifier):
            chosen = f"learning_rate={clf.learning_rate:g}, negatives={clf.negatives}"
    return {
        "set": data.name, "system": system, "seed": seed, "test error %": 100 * error,
        "± rows": 100 * float(np.sqrt(error * (1 - error) / data.y_test.size)),
        "train s": seconds, "chosen": chosen, "tried": tried,
    }  # fmt: skip


def our(data: Dataset, system: str, seed: int) -> tuple[Any, int]:
    """Return one of our classifiers, and how many settings were tried."""
    if system == "Recall Tree":
        return RecallTreeClassifier(random_state=seed), 0
    if system == "Recall Tree, one path":
        return RecallTreeClassifier(beam=1, random_state=seed), 0
    if system == "LOMTree":
        return LOMTreeClassifier(LOM_ROUTERS, random_state=seed), 0
    held = held_out(data, 0.1)

    def error(rate: float) -> float:
        clf = OnlineOneVsAllClassifier(learning_rate=rate, negatives="known", random_state=seed)
        return 1.0 - clf.fit(held.X_train, held.y_train).score(held.X_test, held.y_test)

    rate, tried = ladder(1.0, 2.0, error)
    return OnlineOneVsAllClassifier(learning_rate=rate, negatives="known", random_state=seed), tried


def main() -> None:
    """Run what is missing."""
    parser = arguments(__doc__)
    add_options(parser, 3)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS))
    parser.add_argument("--most-bits", type=int, default=28, help="of vowpalwabbit's table")
    options = parser.parse_args()
    records, version = known(NAME), _vw.version()
    for name in options.sets:
        if not available(options.data, name):
            continue
        data = load(options.data, name)
        systems = [
            s for s in options.systems
            if (version or not s.startswith("VW"))
            and (s != "one-against-all" or data.n_classes < 3000)
        ]  # fmt: skip
        wanted = (
            {"set": name, "system": s, "seed": seed} for seed in options.seeds for s in systems
        )
        for keys in missing(records, wanted, options.minutes):
            records.append(measure(data, keys["system"], keys["seed"], options.most_bits))
            print(records[-1], flush=True)
            write(
                NAME,
                f"Online trees without a parameter, beside vowpalwabbit {version}, tuned",
                "`RecallTreeClassifier(random_state=seed).fit(X, y)`; what it is compared with is "
                "tuned on a tenth of the training rows. ± rows is the standard error over test "
                "rows.",
                means(
                    records, ["set", "system"], ["test error %", "± rows", "train s"],
                    ["test error %"],
                ),
                "All runs:",
                all_runs(records, COLUMNS),
            )  # fmt: skip


if __name__ == "__main__":
    main()
