"""Around the defaults of trees that grow as in paper 000: one change at a time, on training parts.

Each set's training part is split once more; its test part is never read. A variant is judged by its
error on the held-out rows, its cost by multiplications and seconds.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from benchmarks._data import available, load
from benchmarks._report import arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.measuring.latency import Stopwatch

SETS = [
    "letter",
    "fontglyph1000",
    "omniglot",
    "banking77",
    "clinc150",
    "naics2017",
    "icd10cm",
    "wordnet_hypernym",
]
ROWS = 12_000
VARIANTS: dict[str, dict] = {
    "default": {},
    "max_rounds 0": {"max_rounds": 0},
    "max_rounds 2": {"max_rounds": 2},
    "max_sweeps 5": {"max_sweeps": 5},
    "overlap None": {"overlap": None},
    "overlap 0.01": {"overlap": 0.01},
    "overlap 0.05": {"overlap": 0.05},
    "overlap 0.1": {"overlap": 0.1},
    "beta 5": {"beta": 5.0},
    "absent zero_one": {"absent": "zero_one"},
    "max_rounds 8": {"max_rounds": 8},
    "contraction 0.75": {"contraction": 0.75},
    "contraction 0.9": {"contraction": 0.9},
    "tolerance 1.2": {"tolerance": 1.2},
    "initial_contraction 1": {"initial_contraction": 1.0},
    "expansion_depth 2": {"expansion_depth": 2},
}
GROWTH = list(VARIANTS)[10:]
"""What only matters where trees grow by default."""


def main() -> None:
    """Run every variant on every set that is there."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--rows", type=int, default=ROWS, help="of a set, at the most")
    options = parser.parse_args()
    names = [name for name in options.sets if available(options.data, name)]
    errors: dict[str, list] = {variant: [variant] for variant in options.variants}
    costs: dict[str, list] = {variant: [variant] for variant in options.variants}
    for name in names:
        data = load(options.data, name)
        X, y = data.X_train, data.y_train
        if y.size > options.rows:
            rows = np.random.default_rng(0).permutation(y.size)[: options.rows]
            X, y = X[rows], y[rows]
        X, X_held, y, y_held = train_test_split(X, y, test_size=0.2, random_state=0)
        grows = y.size >= 20 * np.unique(y).size and not sp.issparse(X)
        for variant in options.variants:
            if variant in GROWTH and not grows:
                errors[variant].append("–")
                costs[variant].append("–")
                continue
            with Stopwatch() as watch:
                clf = AdaptiveSoftmaxTreeClassifier(
                    decisions="training",
                    **{"max_rounds": 5 if grows else 0} | VARIANTS[variant],
                    random_state=0,
                    n_jobs=-1,
                )
                clf.fit(X, y)
            error = 100 * (1 - clf.score(X_held, y_held))
            flops = clf.mean_flops(X_held)
            errors[variant].append(f"{error:.2f}")
            costs[variant].append(f"{flops:,.0f} / {clf.tree_.n_leaves} / {watch.seconds:.0f}")
            print(f"{name} {variant}: {error:.2f} % {costs[variant][-1]}", flush=True)
        _write(options, names, errors, costs)


def _write(
    options: argparse.Namespace, names: list[str], errors: dict[str, list], costs: dict[str, list]
) -> None:
    """Write what has been measured so far."""
    names = names[: len(next(iter(errors.values()))) - 1]
    write(
        "defaults",
        "Adaptive softmax trees: one change at a time around the defaults",
        f"At most {options.rows:,} rows of each training part, a fifth of them held out, one seed. "
        "Differences below half a point are noise on the smaller sets. By default trees grow for "
        "dense rows with 20 and more a class; what concerns growth is measured there only.",
        "Error on held-out rows, %:",
        table(["variant", *names], list(errors.values())),
        "FLOPs / leaves / fit seconds (2 threads):",
        table(["variant", *names], list(costs.values())),
    )


if __name__ == "__main__":
    main()
