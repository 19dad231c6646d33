"""Paper 000, figure 2: 0/1 error over the sweeps of AST, ST and ST (from AST), on Letter.

The solid lines are of a tenth of the training rows, held out: the test part is not looked at while
training. Settings are those of the control experiment. The picture needs the ``plot`` extra.
"""

from __future__ import annotations

from typing import Any

from benchmarks._data import load
from benchmarks._models import warm_up
from benchmarks._report import RESULTS, arguments, read, table, write
from benchmarks.control import SETTINGS
from benchmarks.papers._section import Check, Section, by_name, lower_error
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier
from thinleaf.explain.histories import Course, course_of
from thinleaf.explain.plots import plot_training

RESULT = "papers_paper000_figure2"
NAMES = ("AST", "ST", "ST (from AST)")
N_HELD = 1600
MANY = 10**6


def fitted(data: Any) -> dict[str, Any]:
    """Return the three models; an ST gets as many sweeps as all rounds of the AST together."""
    settings = SETTINGS["letter"]
    common = settings["common"] | {
        "validation_fraction": 0.1, "patience": MANY, "random_state": 0, "n_jobs": 1,
    }  # fmt: skip
    ast = AdaptiveSoftmaxTreeClassifier(decisions="training", **settings["ast"], **common)
    ast.fit(data.X_train, data.y_train)
    sweeps = sum(len(entry["sweeps"]) for entry in ast.history_)
    k = int(ast.tree_.leaf_sizes.max())
    st = SoftmaxTreeClassifier(settings["depths"][0], k, max_sweeps=sweeps, **common)
    again = SoftmaxTreeClassifier(structure=ast.tree_, max_sweeps=sweeps, **common)
    models = (ast, st.fit(data.X_train, data.y_train), again.fit(data.X_train, data.y_train))
    return dict(zip(NAMES, models, strict=True))


def _rows(courses: dict[str, Course]) -> list[list[Any]]:
    """Return errors at the ends of the AST's rounds."""
    rows = []
    for sweep, _ in courses["AST"].held:
        cells: list[Any] = [sweep]
        for course in courses.values():
            held = dict(course.held)
            last = min(sweep, len(course.train))
            cells += [100 * course.train[last - 1], 100 * held[last]]
        rows.append(cells)
    return rows


def main() -> None:
    """Fit, draw and write."""
    options = arguments(__doc__).parse_args()
    data = load(options.data, "letter")
    warm_up(data, AdaptiveSoftmaxTreeClassifier(decisions="training", max_rounds=1, max_sweeps=2))
    models = fitted(data)
    courses = {name: course_of(model.history_) for name, model in models.items()}
    picture = RESULTS / f"{RESULT}.svg"
    plot_training(models).figure.savefig(picture, metadata={"Date": None})
    headers = ["sweep", *(f"{name}: {rows}" for name in NAMES for rows in ("train %", "held %"))]
    ends = [
        [name, 100 * course.train[-1], 100 * course.held[-1][1],
         100 * min(error for _, error in course.held[: len(course.held) // 2 or 1])]
        for name, course in courses.items()
    ]  # fmt: skip
    write(
        "papers.paper000_figure2",
        "Paper 000, figure 2: errors over the sweeps, Letter",
        f"One seed, a tenth of the training rows held out. `{SETTINGS['letter']}` "
        f"![]({picture.name})",
        table(headers, _rows(courses)),
        table(["at the end", "train %", "held-out %", "lowest held-out % of the first half"], ends),
    )


def section() -> Section:
    """Return the paper's claims beside ours."""
    result = read(RESULT)
    ends = by_name(result.tables[1])
    error = {name: row["held-out %"] for name, row in ends.items()}
    half = "lowest held-out % of the first half"
    why = "with overlap and a ridge term, an ST of the AST's largest k is as good on Letter"
    checks = [
        lower_error("AST ends below ST", "so", error["AST"], error["ST"], N_HELD, why),
        lower_error("AST ends below ST (from AST)", "so", error["AST"], error["ST (from AST)"],
                    N_HELD),
        lower_error("growth goes on lowering the error of AST", "so", error["AST"],
                    ends["AST"][half], N_HELD),
    ]  # fmt: skip
    for name in NAMES[1:]:
        gain = lower_error("", "", error[name], ends[name][half], N_HELD)
        what = f"{name} does not improve after some sweeps (second half against first)"
        checks.append(Check(what, "so", gain.ours, not gain.holds, "it still improves"))
    return Section(
        "Figure 2: errors over the sweeps",
        [RESULT],
        "Letter; the paper's figure is of the sets of its table 1. Held-out training rows instead "
        "of test rows. The curves are not given as numbers.",
        checks,
        result.parts,
    )


if __name__ == "__main__":
    main()
