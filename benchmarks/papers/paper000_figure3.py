"""Paper 000, figure 3: how many classes the leaves of an AST hold at each depth.

clinc150 stands in for the subset of WIKI-Small; Letter is beside it. Settings are those of the
control experiment. Pictures need the ``plot`` extra.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from benchmarks._data import available, load
from benchmarks._report import RESULTS, Table, arguments, read, table, write
from benchmarks.control import SETTINGS
from benchmarks.papers._section import Check, Section, number
from thinleaf import AdaptiveSoftmaxTreeClassifier
from thinleaf.explain.histories import most_classes
from thinleaf.explain.plots import plot_leaf_classes

RESULT = "papers_paper000_figure3"
SETS = ("clinc150", "letter")
INITIAL_DEPTH = 2
"""What ``initial_depth`` is for the classes that these sets have, unless it is given."""

HEADERS = ["depth", "leaves", "mean classes", "most classes", "α₀·K·α^expansions"]


def leaf_classes(model: Any) -> Table:
    """Return how many classes there are by depth."""
    tree = model.tree_
    depth, size = tree.node_depth[tree.is_leaf], tree.leaf_sizes
    rows = []
    for d in np.unique(depth):
        held = size[depth == d]
        limit = float(most_classes(model, np.array([float(d)]))[0])
        rows.append([int(d), held.size, float(held.mean()), int(held.max()), limit])
    return table(HEADERS, rows)


def main() -> None:
    """Fit, draw and write, for the sets that are there."""
    options = arguments(__doc__).parse_args()
    parts = []
    for name in SETS:
        if not available(options.data, name):
            continue
        data, settings = load(options.data, name), SETTINGS[name]
        model = AdaptiveSoftmaxTreeClassifier(
            decisions="training",
            **settings["ast"],
            **settings["common"],
            random_state=0,
            n_jobs=1,
        ).fit(data.X_train, data.y_train)
        picture = RESULTS / f"{RESULT}_{name}.svg"
        plot_leaf_classes(model).figure.savefig(picture, metadata={"Date": None})
        note = f"`{settings['common'] | settings['ast']}` ![]({picture.name})"
        parts += [f"## {name}", note, leaf_classes(model)]
        title = "Paper 000, figure 3: classes in the leaves by depth"
        write("papers.paper000_figure3", title, *parts)


def _why_one_depth(depth: int, n_leaves: int) -> str:
    """Return why all leaves of a tree have the same depth."""
    if depth == INITIAL_DEPTH:
        return "no leaf was expanded with these settings"
    if n_leaves == 2**depth:
        return "every leaf was expanded in every round, so all have the same depth"
    return "the reason is not known"


def section() -> Section:
    """Return the paper's claims beside ours."""
    result = read(RESULT)
    checks = []
    for name, part in zip(SETS, result.tables, strict=False):
        depth, leaves, mean, most, limit = np.array(part.rows, dtype=float).T
        rank = float(spearmanr(depth, mean).statistic) if depth.size > 1 else math.nan
        over = int(np.sum(most > limit + 1e-6))
        checks += [
            Check(f"{name}: deeper leaves hold fewer classes (rank correlation of depth and mean)",
                  "so, with exceptions", number(rank) if depth.size > 1 else "one depth", rank < 0,
                  "leaves that pruning lifts towards the root are small" if depth.size > 1
                  else _why_one_depth(int(depth[0]), int(leaves[0]))),
            Check(f"{name}: depths with a leaf above the theoretical maximum", "none", str(over),
                  over == 0),
        ]  # fmt: skip
    return Section(
        "Figure 3: classes in the leaves by depth",
        [RESULT],
        "clinc150 stands in for the subset of WIKI-Small, whose tree the paper draws. Letter is "
        "beside it.",
        checks,
        result.parts,
    )


if __name__ == "__main__":
    main()
