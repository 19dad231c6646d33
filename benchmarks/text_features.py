"""Words, characters or both: errors of each kind on held-out rows, and what the data choose.

Only training parts are read, unless ``--test`` asks for the last table. Parts of the report:

- characters: errors of the judge of ``thinleaf.text.choice`` with several ranges of characters,
  beside words, and the entries of a row; where the default of ``char_range`` is from.
- kinds (``--trees``): errors of adaptive trees with each kind, trained on four fifths of the rows.
- the choice: what ``choose_features`` takes with several seeds, and how long that takes.
- test rows (``--test``): adaptive trees with words, and with the features that were chosen.
With ``--state``, what is done is not run again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._data import TEXT_SETS, available, read_tsv
from benchmarks._records import Kept, merged
from benchmarks._report import Table, arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.measuring.latency import Stopwatch
from thinleaf.text import TextFeatures
from thinleaf.text.choice import choose, choose_features, wrong_rows

RANGES = ((2, 3), (3, 3), (3, 4), (2, 4), (4, 4), (5, 5), (3, 5), (2, 5))
KINDS: tuple[Any, ...] = ("tfidf", "chars", "both")
HELD_OUT = 0.2
MOST_HELD_OUT = 4000
N_SEEDS = 3


def ranges(name: str, texts: list[str], y: np.ndarray) -> list[list[Any]]:
    """Return errors in percent with words, characters and both, for each range."""
    _, ids = np.unique(y, return_inverse=True)
    rows = []
    for char_range in RANGES:
        features = TextFeatures("both", char_range=char_range)
        wrong = wrong_rows(features, texts, ids, np.random.default_rng(0))
        entries = features.transform(texts[:5000]).nnz / min(5000, len(texts))
        errors = [100 * float(wrong[kind].mean()) for kind in KINDS]
        rows.append([name, f"{char_range[0]} to {char_range[1]}", *errors, round(entries)])
    return rows


def trees(name: str, texts: list[str], y: np.ndarray, kept: Kept) -> list[list[Any]]:
    """Return the error and the seconds of a fit of an adaptive tree with each kind."""
    order = np.random.default_rng(0).permutation(y.size)
    n_held_out = min(int(HELD_OUT * y.size), MOST_HELD_OUT)
    held_out, train = np.split(order, [n_held_out])
    rows = []
    for kind in KINDS:
        parts = [[texts[i] for i in part] for part in (train, held_out)]
        asked = (TextFeatures(kind), *parts, y[train], y[held_out])
        rows += kept.rows((name, "trees", kind), line, name, kind, *asked)
    return rows


def fitted(
    features: TextFeatures,
    train: list[str],
    test: list[str],
    y_train: np.ndarray,
    y_test: np.ndarray,
) -> list[Any]:
    """Return error in percent, its standard error, and the seconds of features and tree."""
    with Stopwatch() as watch:
        X = features.fit_transform(train)
        clf = AdaptiveSoftmaxTreeClassifier(random_state=0).fit(X, y_train)
    wrong = clf.predict(features.transform(test)) != y_test
    error = float(wrong.mean())
    deviation = 100 * np.sqrt(error * (1 - error) / wrong.size)
    return [100 * error, float(deviation), watch.seconds]


def line(name: str, label: str, *asked: Any) -> list[list[Any]]:
    """Return the line of one fit."""
    return [[name, label, *fitted(*asked)]]


def choices(name: str, texts: list[str], y: np.ndarray) -> list[list[Any]]:
    """Return what is chosen with several seeds."""
    rows = []
    for seed in range(N_SEEDS):
        with Stopwatch() as watch:
            choice = choose(texts, y, random_state=seed)
        errors = [choice.errors[kind] for kind in KINDS]
        rows.append([name, seed, choice.features.kind, *errors, choice.n_rows, watch.seconds])
    return rows


def tests(folder: Path, name: str, texts: list[str], y: np.ndarray, kept: Kept) -> list[list[Any]]:
    """Return errors on test rows with words, and with what is chosen."""
    y_test, asked = read_tsv(folder / "test.tsv.gz")
    chosen = choose_features(texts, y, random_state=0).kind
    rows = []
    for kind in dict.fromkeys(("tfidf", chosen)):
        label = f"{kind}, chosen" if kind == chosen else kind
        key = (name, "tests", kind)
        rows += kept.rows(key, line, name, label, TextFeatures(kind), texts, asked, y, y_test)
    return rows


def main() -> None:
    """Measure the sets that are there."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", default=TEXT_SETS, choices=TEXT_SETS)
    parser.add_argument("--trees", action="store_true", help="train trees with each kind")
    parser.add_argument("--test", action="store_true", help="the table of test rows, alone")
    parser.add_argument("--loaded", action="store_true", help="say that other jobs ran beside it")
    Kept.add_option(parser)
    options = parser.parse_args()
    kept = Kept(options.state)
    parts: dict[str, list[list[Any]]] = {"ranges": [], "trees": [], "choices": [], "tests": []}
    for name in options.sets:
        if not available(options.data, name):
            print(f"skipped: no {name} in {options.data}")
            continue
        y, texts = read_tsv(options.data / name / "train.tsv.gz")
        if options.test:
            parts["tests"] += tests(options.data / name, name, texts, y, kept)
            continue
        parts["ranges"] += kept.rows((name, "ranges"), ranges, name, texts, y)
        parts["choices"] += kept.rows((name, "choices"), choices, name, texts, y)
        if options.trees:
            parts["trees"] += trees(name, texts, y, kept)
    if options.test:  # sets that were not run stay as they are
        parts["tests"] = merged("text_features_test", parts["tests"], TEXT_SETS)
    suffix = "test" if options.test else "trees" if options.trees else ""
    loaded = f"Other jobs ran beside {', '.join(options.sets)}: seconds there are too high."
    notes = [loaded] if options.loaded else []
    write("text_features", "Features of texts", *report(parts), *notes, suffix=suffix)


def report(parts: dict[str, list[list[Any]]]) -> list[str | Table]:
    """Return the tables that have rows."""
    tree = ["error %", "standard error", "features and fit s"]
    headers = {
        "ranges": ["set", "characters", "words %", "characters %", "both %", "entries of both"],
        "trees": ["set", "kind", *tree],
        "choices": ["set", "seed", "chosen", *KINDS, "held-out rows", "seconds"],
        "tests": ["set", "features", *tree],
    }
    titles = {
        "ranges": "Least squares on held-out rows of samples of classes:",
        "trees": "Adaptive trees on held-out rows of the training part:",
        "choices": "What is chosen, and the errors that decide it:",
        "tests": "Adaptive trees on test rows:",
    }
    out: list[str | Table] = []
    for name, rows in parts.items():
        if rows:
            out += [titles[name], table(headers[name], rows)]
    return out


if __name__ == "__main__":
    main()
