"""Adaptive trees on many sets, beside a flat softmax where that can be trained in reasonable time.

The flat softmax is the library's own leaf solver over all classes (a tree of depth 0).
"""

from __future__ import annotations

import resource

from benchmarks._data import available, load
from benchmarks._models import COLUMNS, fit_figures, warm_up
from benchmarks._report import arguments, table, write
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier

TRAINING = {"decisions": "training", "max_rounds": 0}
"""As in the paper, and without growth unless a variant says how much."""

TEXT = {"router_l1": 0.001, "leaf_l1": 0.001, "router_ridge": 0.01, "leaf_ridge": 0.01}
QUICK = TEXT | {"max_sweeps": 5}
WIDE = QUICK | {"initial_depth": 4, "initial_contraction": 0.25}
SETTINGS: dict[str, dict[str, dict]] = {
    "icd10cm": {
        "default": {},
        "wide": WIDE,
        "64 leaves": QUICK,
        "wide, 1 round": WIDE | {"max_rounds": 1, "overlap": 0.05},
        "wide, 2 rounds": WIDE | {"max_rounds": 2, "overlap": 0.05},
        "wide, 4 rounds": WIDE | {"max_rounds": 4, "overlap": 0.1},
    },
    "clinc150": {"default": {}, "wide": QUICK, "2 rounds": {"max_rounds": 2}},
    "banking77": {"default": {}, "wide": QUICK, "2 rounds": {"max_rounds": 2}},
    "naics2017": {"default": {}, "wide": QUICK, "2 rounds": {"max_rounds": 2}},
    "wordnet_hypernym": {"5 sweeps": {"max_sweeps": 5}, "wide": QUICK},
    "omniglot": {
        "5 sweeps": {"max_sweeps": 5},
        "wide": {"max_sweeps": 5, "initial_depth": 3, "leaf_ridge": 40.0},
    },
    "debian_paths": {"two sweeps": QUICK | {"max_sweeps": 2, "absent": "zero_one"}},
    "bible_verse": {
        "two sweeps": QUICK
        | {"max_sweeps": 2, "initial_depth": 8, "leaf_ridge": 0.03}
        | {"overlap": 0.05}
    },
}
FLAT = {
    "clinc150": TEXT,
    "banking77": TEXT,
    "naics2017": TEXT,
    "omniglot": {"leaf_ridge": 40.0, "tol": 1e-3},
}


def run(name: str, directory) -> None:
    """Fit the models of a set, and write the report anew after each."""
    data = load(directory, name)
    warm_up(
        data,
        AdaptiveSoftmaxTreeClassifier(decisions="training", max_rounds=1, max_sweeps=2, n_jobs=-1),
    )
    models = {
        f"AST, {variant}": AdaptiveSoftmaxTreeClassifier(**TRAINING | changes)
        for variant, changes in SETTINGS[name].items()
    }
    if name in FLAT:
        flat = SoftmaxTreeClassifier(
            depth=0, leaf_classes=data.n_classes, max_sweeps=3, **FLAT[name]
        )
        models["flat softmax"] = flat
    settings = "; ".join(f"{variant}: `{changes}`" for variant, changes in SETTINGS[name].items())
    rows = []
    for label, model in models.items():
        model.set_params(random_state=0, n_jobs=-1, verbose=1)
        values = fit_figures(model, data)
        rows.append([label, *(values[column] for column in COLUMNS)])
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        write(
            "adaptive_sets",
            f"Adaptive trees: {name}",
            f"{data.X_train.shape[0]:,} rows, {data.X_train.shape[1]:,} features, "
            f"{data.n_classes:,} classes; one seed, 2 threads, peak memory {memory:.1f} GiB; MB of "
            f"the frozen model. Settings, otherwise the defaults: {settings}.",
            table(["", *COLUMNS], rows),
            suffix=name,
        )


def main() -> None:
    """Run the named set."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=sorted(SETTINGS), required=True)
    options = parser.parse_args()
    if not available(options.data, options.set):
        raise SystemExit(f"{options.set} is not in the data directory")
    run(options.set, options.data)


if __name__ == "__main__":
    main()
