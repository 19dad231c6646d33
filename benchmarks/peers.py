"""Our trees beside other libraries: error, latency, size and training time, in one run.

Single: the fastest Python call for one sample, its input prepared. Batch: the whole test part. One
thread everywhere. Peers are near their default settings, not tuned; those that are not installed
are left out, and so are those that a set would keep busy for long. The front are the systems than
which no other has both fewer errors and a shorter single latency.
"""

from __future__ import annotations

import traceback
from dataclasses import replace
from typing import Any

from benchmarks import adaptive_sets
from benchmarks._data import DENSE_SETS, LANGUAGE_SETS, TEXT_SETS, as_split, available, load
from benchmarks._report import arguments, table, write
from thinleaf import (
    AdaptiveSoftmaxTreeClassifier,
    DoubleSamplingClassifier,
    FlatSoftmaxClassifier,
    LabelTreeClassifier,
    LOMTreeClassifier,
    MACHClassifier,
    OneVsAllClassifier,
    RecallTreeClassifier,
    SoftmaxForestClassifier,
    SoftmaxTreeClassifier,
)
from thinleaf.explain.frontier import pareto_front
from thinleaf.measuring import Split
from thinleaf.measuring.latency import N_PASSES, N_SINGLE
from thinleaf.measuring.measure import measure
from thinleaf.measuring.peers import PEERS, Peer
from thinleaf.measuring.systems import Ours, Refrozen, System

COLUMNS = ["", "error %", "single µs", "batch µs", "bytes", "train s", "front"]
LETTER = {
    "router_ridge": 1.0, "leaf_ridge": 0.1, "tol": 1e-4, "initial_contraction": 1.0, "max_rounds": 8
}  # fmt: skip
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "letter": {"defaults": {}, "tuned": LETTER},
    "fontglyph1000": {"5 sweeps, grown once": {"max_sweeps": 5, "max_rounds": 1}},
    "novels100": {},
    "ptb": {
        "3 sweeps": {
            "init": "class_clusters", "initial_depth": 6, "initial_contraction": 0.05,
            "max_rounds": 0, "max_sweeps": 3, "router_ridge": 100.0, "leaf_ridge": 70.0,
        }
    },
}  # fmt: skip
ROUNDS = {"letter": {"max_rounds": 5}}
"""Of growth, where there are some by default."""

FORESTS: dict[str, tuple[Any, int]] = {
    "letter": (
        AdaptiveSoftmaxTreeClassifier(
            decisions="training", max_rounds=5, router_ridge=1.0, leaf_ridge=0.1
        ),
        32,
    ),
    "fontglyph1000": (
        SoftmaxTreeClassifier(
            depth=9, leaf_classes=20, router_ridge=10.0, leaf_ridge=0.5, tol=1e-3, max_sweeps=8
        ),
        16,
    ),
    "omniglot": (AdaptiveSoftmaxTreeClassifier(**adaptive_sets.TRAINING, max_sweeps=5), 4),
    "banking77": (
        SoftmaxTreeClassifier(**adaptive_sets.TEXT, depth=2, leaf_classes=40, max_sweeps=3), 8
    ),
    "clinc150": (
        SoftmaxTreeClassifier(**adaptive_sets.TEXT, depth=3, leaf_classes=40, max_sweeps=3), 8
    ),
    "naics2017": (
        SoftmaxTreeClassifier(**adaptive_sets.TEXT, depth=5, leaf_classes=80, max_sweeps=3), 8
    ),
    "icd10cm": (
        SoftmaxTreeClassifier(**adaptive_sets.TEXT, depth=6, leaf_classes=80, max_sweeps=3), 8
    ),
    "wordnet_hypernym": (AdaptiveSoftmaxTreeClassifier(**adaptive_sets.TRAINING, max_sweeps=3), 4),
    "bible_verse": (
        SoftmaxTreeClassifier(
            **adaptive_sets.TEXT | {"router_ridge": 1.0, "tol": 1e-4},
            depth=8, leaf_classes=300, max_sweeps=1, overlap=0.01,
        ),
        4,
    ),
}  # fmt: skip
"""The trees of a set's forest, and their number."""

BEAMS = (2, 4)
FOREST_BEAMS = {"bible_verse": ((1, 4), (1, 8), (1, 16), (2, 8), (2, 16), (4, 4), (4, 16))}
"""Numbers of trees and beams; elsewhere, all trees with each of ``BEAMS``. On held-out rows, one
tree with each beam, (2, 16) and (4, 16) have the fewest errors in their time."""

TEMPERATURES = {"bible_verse": 4.0}
"""Of forests with a beam, where it has been looked for on held-out rows."""

FLAT = ("flat softmax", "one-vs-all", "MACH", "(π,κ)-DS")
SLOW = {
    "fontglyph1000": ("LightGBM", *FLAT),
    "omniglot": ("LightGBM", *FLAT),
    "naics2017": ("LightGBM",),
    "icd10cm": ("LightGBM",),
    "wordnet_hypernym": ("LightGBM", "fastText softmax", *FLAT),
    "debian_paths": ("LightGBM", "fastText softmax", *FLAT),
    "bible_verse": ("LightGBM", "fastText softmax", *FLAT),
    "ptb": (
        "LightGBM", "napkinXC HSM", "napkinXC PLT", "scikit-learn tree", "flat softmax, NumPy",
        *FLAT,
    ),
    "novels100": ("LightGBM", *FLAT),
}  # fmt: skip
"""Systems that a set would keep busy for long."""

SETS = tuple(
    name
    for name in (*DENSE_SETS, *TEXT_SETS, *LANGUAGE_SETS)
    if name in SETTINGS or name in adaptive_sets.SETTINGS
)
"""The sets that there are settings for; ``benchmarks.adapts`` measures defaults on others too."""

MOST_TESTS = 50_000
"""Test rows: some systems keep each as an object of many kilobytes."""

OUR_NAMES = ("AST", "forest", "Recall Tree", "label tree")


def is_ours(name: str) -> bool:
    """Return whether a row of the table is one of our models."""
    return name.startswith(OUR_NAMES)


def with_beam(name: str, model: Any, beam: int) -> Refrozen:
    """Return a tree that is fitted before, with a beam."""
    return Refrozen(f"{name}, beam {beam}", model, lambda frozen: frozen.with_beam(beam))


def first_trees(model: Any, n_trees: int, beam: int = 1, temperature: float = 1.0) -> Refrozen:
    """Return the first trees of a forest that is fitted before."""
    name = "forest, 1 tree" if n_trees == 1 else f"forest, {n_trees} trees"
    name += f", beam {beam}" if beam > 1 else ""
    name += f", temperature {temperature:g}" if temperature != 1.0 else ""
    return Refrozen(
        name,
        model,
        lambda frozen: frozen.with_beam(beam, temperature=temperature).prefix(n_trees),
    )


def forests(name: str) -> list[Ours]:
    """Return a forest of a set, then its first 1, 2, 4, … trees, and all of them with beams."""
    if name not in FORESTS:
        return []
    tree, n = FORESTS[name]
    forest = SoftmaxForestClassifier(tree, n, random_state=0, n_jobs=1)
    firsts = [2**i for i in range(n.bit_length()) if 2**i < n]
    beams = FOREST_BEAMS.get(name, [(n, beam) for beam in BEAMS]) if name in TEXT_SETS else ()
    temperature = TEMPERATURES.get(name, 1.0)
    return [
        Ours(f"forest, {n} trees", forest),
        *(first_trees(forest, m) for m in firsts),
        *(first_trees(forest, m, beam, temperature) for m, beam in beams),
    ]


def ours(name: str, with_forest: bool = True) -> list[Ours]:
    """Return our models for a set; settings as in the other benchmarks."""
    settings = SETTINGS[name] if name in SETTINGS else adaptive_sets.SETTINGS[name]
    models: list[Ours] = []
    for variant, changes in settings.items():
        if "round" in variant:
            continue
        tree = AdaptiveSoftmaxTreeClassifier(
            random_state=0, n_jobs=1, **adaptive_sets.TRAINING | ROUNDS.get(name, {}) | changes
        )
        models.append(Ours(f"AST, {variant}", tree))
        if name in TEXT_SETS:
            models += [with_beam(f"AST, {variant}", tree, beam) for beam in BEAMS]
    models += forests(name) if with_forest else []
    models.append(Ours("Recall Tree", RecallTreeClassifier(random_state=0)))
    if name in TEXT_SETS:
        models.append(Ours("label tree, on raw texts", LabelTreeClassifier(random_state=0)))
    return models


def baselines(name: str) -> list[Ours]:
    """Return the methods that trees are compared with, as this library has them."""
    models: dict[str, Any] = {
        "flat softmax": FlatSoftmaxClassifier(random_state=0, n_jobs=1),
        "one-vs-all": OneVsAllClassifier(n_jobs=1),
        "MACH": MACHClassifier(random_state=0, n_jobs=1),
        "(π,κ)-DS": DoubleSamplingClassifier(random_state=0),
        "LOMTree": LOMTreeClassifier(random_state=0),
    }
    if name in TEXT_SETS:
        models["hierarchical softmax, on raw texts"] = LabelTreeClassifier(
            tree="huffman", random_state=0
        )
    slow = SLOW.get(name, ())
    return [Ours(label, model) for label, model in models.items() if label not in slow]


def peers(name: str, split: Split) -> list[Peer]:
    """Return the installed systems that suit a set, near their default settings, not tuned."""
    systems = [system for make in PEERS.values() for system in make()]
    quick = [system for system in systems if system.name not in SLOW.get(name, ())]
    return [system for system in quick if system.obstacle(split) is None]


def row(system: System, split: Split) -> list[Any]:
    """Return a row of the table."""
    figures = measure(system, split)
    seconds = "as above" if isinstance(system, Refrozen) else figures.train_seconds
    latencies = [figures.single_us, figures.batch_us]
    return [system.name, 100 * figures.error, *latencies, figures.bytes, seconds]


def with_front(rows: list[list[Any]]) -> list[list[Any]]:
    """Return the rows with the last column filled in; systems that failed are not on the front."""
    best = pareto_front({row[0]: (row[2], row[1]) for row in rows if isinstance(row[1], float)})
    return [[*row, "yes" if row[0] in best else ""] for row in rows]


def main() -> None:
    """Run every system on a set; the report is written anew after each."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=SETS, required=True)
    parser.add_argument("--every", type=int, default=1, help="take one of so many training rows")
    parser.add_argument("--no-forest", action="store_true", help="which takes longest to train")
    options = parser.parse_args()
    if not available(options.data, options.set):
        raise SystemExit(f"{options.set} is not in the data directory")
    data = load(options.data, options.set)
    if options.every > 1:
        step = slice(None, None, options.every)
        data = replace(data, X_train=data.X_train[step], y_train=data.y_train[step])
    if len(data.y_test) > MOST_TESTS:
        data = replace(data, X_test=data.X_test[:MOST_TESTS], y_test=data.y_test[:MOST_TESTS])
    split = as_split(data)
    slow = SLOW.get(data.name, ())
    our_models = ours(data.name, not options.no_forest)
    rows: list[list[Any]] = []
    for system in [*our_models, *baselines(data.name), *peers(data.name, split)]:
        try:
            system.rehearse(split)
            rows.append(row(system, split))
        except Exception as error:  # a peer that fails is a row that says so
            traceback.print_exc()
            rows.append([system.name, f"failed: {type(error).__name__}", *[""] * 4])
        print(rows[-1], flush=True)
        write(
            "peers",
            f"Ours and other libraries on {data.name}",
            f"{split.y_train.size:,} training and {split.y_test.size:,} test rows, "
            f"{split.n_classes:,} classes; one thread, one seed; "
            f"single: median of up to {N_PASSES} passes over {N_SINGLE:,} test rows. The first "
            f'{len(our_models)} are ours; those with "as above" are parts of a model above '
            "them, or it with a beam. The baselines that follow are this library's too, at their "
            "defaults; the other libraries are near their defaults, not tuned."
            + (f" Not run, for the time that training takes: {', '.join(slow)}." if slow else ""),
            table(COLUMNS, with_front(rows)),
            suffix=data.name,
        )


if __name__ == "__main__":
    main()
