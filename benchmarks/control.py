"""The control experiment of paper 000, section 6.2: does growth help, or only the structure?

AST; ST with the AST's largest leaf as k, a complete tree; and "ST (from AST)", an ST
with the AST's structure and leaf sizes but fresh parameters. Penalties and overlap are the same for
all, and an ST gets as many sweeps as all rounds of the AST together.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks._data import available, load
from benchmarks._models import SHORT, fit_figures, mean, warm_up
from benchmarks._report import arguments, table, write
from benchmarks.adaptive_sets import TEXT
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier

SETTINGS = {
    "letter": {
        "common": {"router_ridge": 1.0, "leaf_ridge": 0.1, "tol": 1e-4},
        "ast": {"contraction": 0.85, "initial_contraction": 1.0, "max_rounds": 8},
        "depths": (7,),
    },
    "fontglyph1000": {
        "common": {"router_ridge": 50.0, "leaf_ridge": 1.0, "tol": 1e-3},
        "ast": {
            "contraction": 0.75,  # this and the tolerance: the paper's for ALOI
            "tolerance": 1.01,
            "initial_contraction": 0.128,
            "initial_depth": 4,
            "max_rounds": 3,
            "max_sweeps": 5,
            "expansion_sweeps": 5,
        },
        "depths": (6,),
    },
    "icd10cm": {  # in the place of LSHTC1
        "common": TEXT | {"tol": 1e-3, "overlap": 0.05},
        "ast": {
            "contraction": 0.7,
            "initial_contraction": 0.1,
            "initial_depth": 5,
            "max_rounds": 3,
            "max_sweeps": 4,
            "expansion_sweeps": 4,
        },
        "depths": (5, 7),
    },
    "clinc150": {  # in the place of the subset of WIKI-Small
        "common": TEXT | {"tol": 1e-3, "overlap": 0.05},
        "ast": {
            "contraction": 0.7,
            "initial_contraction": 0.75,
            "max_rounds": 3,
            "max_sweeps": 4,
            "expansion_sweeps": 4,
        },
        "depths": (3, 5),
    },
}


def control(data, n_seeds: int, n_jobs: int) -> Iterator[list[list]]:
    """Yield, after each seed, the rows of a table like the paper's Table 1."""
    settings = SETTINGS[data.name]
    common = settings["common"] | {"n_jobs": n_jobs}
    warm_up(
        data,
        AdaptiveSoftmaxTreeClassifier(decisions="training", max_rounds=1, max_sweeps=2, **common),
    )
    runs: dict[str, list[dict[str, float]]] = {}

    def run(name: str, model) -> None:
        figures_of = fit_figures(model, data)
        runs.setdefault(name, []).append(figures_of)
        print(data.name, name, figures_of, flush=True)

    for seed in range(n_seeds):
        ast = AdaptiveSoftmaxTreeClassifier(
            decisions="training", **settings["ast"], **common, random_state=seed
        )
        run("AST", ast)
        sweeps = sum(len(entry["sweeps"]) for entry in ast.history_)
        largest = int(ast.tree_.leaf_sizes.max())
        shared = common | {"max_sweeps": sweeps, "random_state": seed}
        for depth in settings["depths"]:
            model = SoftmaxTreeClassifier(depth, largest, **shared)
            run(f"ST (k of the AST's largest leaf, depth {depth})", model)
        run("ST (from AST)", SoftmaxTreeClassifier(structure=ast.tree_, **shared))
        yield [[name, *mean(of_model, SHORT)] for name, of_model in runs.items()]


def main() -> None:
    """Run the sets that are there."""
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--set", choices=sorted(SETTINGS), required=True)
    options = parser.parse_args()
    if not available(options.data, options.set):
        raise SystemExit(f"{options.set} is not in the data directory")
    data = load(options.data, options.set)
    for n_done, rows in enumerate(control(data, options.seeds, options.jobs), start=1):
        seeds = "One seed" if n_done == 1 else f"Means of {n_done} seeds"
        write(
            "control",
            f"Control experiment on {options.set}: AST, ST, ST (from AST)",
            f"{seeds}. `{SETTINGS[options.set]}`",
            table(["", *SHORT], rows),
            suffix=options.set,
        )


if __name__ == "__main__":
    main()
