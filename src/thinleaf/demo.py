"""The demo, ``thinleaf demo``: from a diagnosis text to its ICD-10-CM category.

Trains a tree, a forest of such trees and a flat softmax on the same texts, and shows what they are
when they are deployed: errors, microseconds, bytes; what the tree says to some of the test texts;
and a picture of error against latency. All of it is measured by :mod:`thinleaf.measuring`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from thinleaf._dtypes import INDEX
from thinleaf.datasets.icd10cm import TextSplit, load_icd10cm
from thinleaf.estimators import (
    FlatSoftmaxClassifier,
    SoftmaxForestClassifier,
    SoftmaxTreeClassifier,
)
from thinleaf.measuring import Split
from thinleaf.measuring.latency import N_SINGLE, Stopwatch, single_latency
from thinleaf.measuring.measure import Figures, measure
from thinleaf.measuring.systems import Ours, Refrozen
from thinleaf.model.frozen import FrozenTree
from thinleaf.text.features import TextFeatures

TREE_SETTINGS: Final[Mapping[str, Any]] = {
    "depth": 6,
    "leaf_classes": 80,
    "router_l1": 0.001,
    "leaf_l1": 0.001,
    "router_ridge": 0.01,
    "leaf_ridge": 0.01,
    "max_sweeps": 3,
    "random_state": 0,
}
BEAM = 4
N_TREES = 4

FIGURE: Final = Path("thinleaf-demo.svg")
"""Where the picture goes if nobody says where."""

_FIGURE_TITLE = "thinleaf demo: error against latency"
_N_EXAMPLES = 8

Say = Callable[[str], None]


@dataclass(frozen=True)
class Rows:
    """The texts as rows, and what makes a row of a text."""

    features: TextFeatures
    split: Split
    categories: list[str]
    """By class id."""


@dataclass(frozen=True)
class Outcome:
    """What was measured.

    Attributes
    ----------
    figures : dict of str to Figures
        By the name of the model.
    row_us : float
        Microseconds that making the row of one text takes, whatever model it is for.
    tree : FrozenTree
        The tree as it is deployed; its labels are class ids.
    """

    figures: dict[str, Figures]
    row_us: float
    tree: FrozenTree


def first_rows(data: TextSplit, n_rows: int) -> TextSplit:
    """Return the first training texts and the test texts of their categories."""
    kept = set(data.y_train[:n_rows])
    test = [i for i, category in enumerate(data.y_test) if category in kept]
    return TextSplit(
        data.texts_train[:n_rows],
        data.y_train[:n_rows],
        [data.texts_test[i] for i in test],
        [data.y_test[i] for i in test],
        {category: data.titles[category] for category in sorted(kept)},
    )


def make_rows(data: TextSplit) -> Rows:
    """Turn texts into tf-idf rows of words and pairs of words that two training texts have."""
    features = TextFeatures(max_features=None).fit(data.texts_train)
    X_train, X_test = (features.transform(part) for part in (data.texts_train, data.texts_test))
    split = Split.of(X_train, np.asarray(data.y_train), X_test, np.asarray(data.y_test))
    return Rows(features, split, sorted(set(data.y_train)))


def compare(rows: Rows, texts: Sequence[str], say: Say, *, verbose: bool = True) -> Outcome:
    """Train the models on the same rows and measure them.

    Parameters
    ----------
    rows : Rows
    texts : sequence of str
        To make rows of, one by one.
    say : callable
        Gets a line of text at each stage.
    verbose : bool
        Whether models show their progress on standard error.
    """
    shown = int(verbose)
    tree = Ours("tree", SoftmaxTreeClassifier(**TREE_SETTINGS, n_jobs=-1, verbose=shown))
    forest = SoftmaxForestClassifier(
        SoftmaxTreeClassifier(**TREE_SETTINGS), N_TREES, n_jobs=-1, random_state=0, verbose=shown
    )
    flat = FlatSoftmaxClassifier(solver="adagrad", random_state=0, verbose=shown)
    systems = [
        tree,
        Refrozen(f"tree, beam {BEAM}", tree.model, lambda model: model.with_beam(BEAM)),
        Ours(f"forest of {N_TREES} trees", forest),
        Ours("flat softmax", flat),
    ]
    say("Compiling, or loading what an earlier run has compiled")
    with Stopwatch() as watch:
        for system in systems:
            system.rehearse(rows.split)
    say(f"That took {watch.seconds:.1f} s")
    figures: dict[str, Figures] = {}
    for system in systems:
        figures[system.name] = measure(system, rows.split, _stages(system, say))
    again = replace(figures[systems[1].name], train_seconds=figures[tree.name].train_seconds)
    some = [([text],) for text in texts[:N_SINGLE]]
    row_us = single_latency(rows.features.transform, some).median
    return Outcome(figures | {systems[1].name: again}, row_us, tree.predictor)


def _stages(system: Ours, say: Say) -> Say:
    """Return what says at which stage a system is; another beam needs no training."""

    def stage(name: str) -> None:
        if name != "training" or not isinstance(system, Refrozen):
            say(f"{system.name}: {name}")

    return stage


def comparison_table(outcome: Outcome, n_test: int, n_classes: int) -> RenderableType:
    """Return the models side by side, and what the figures mean."""
    table = Table(title="Diagnosis text to ICD-10-CM category")
    table.add_column("", no_wrap=True)
    for heading in ("error", "top-5\nerror", "µs a\nprediction", "model\nMB", "training\ns"):
        table.add_column(heading, justify="right")
    for name, one in outcome.figures.items():
        table.add_row(
            name,
            f"{100 * one.error:.1f} %",
            f"{100 * (one.top_k_error or 0.0):.1f} %",
            f"{one.single_us:.1f}",
            f"{(one.bytes or 0) / 1e6:.1f}",
            f"{one.train_seconds:.1f}",
        )
    tree = outcome.figures["tree"]
    note = (
        f"Errors on {n_test:,} texts that no model has seen. A prediction is a call of predict_one "
        "of the frozen model, on one thread, its row made before. Making the row of a raw text "
        f"takes {outcome.row_us:.0f} µs more, whatever the model.\n"
        f"The tree has depth {tree.depth} and {tree.leaves} leaves, each with "
        f"{tree.mean_leaf_classes or 0:.0f} of {n_classes:,} categories on average; with a beam, a "
        "prediction looks at several of them. Trees train on all cores.\n"
        "The flat softmax is one linear layer over all categories, trained without penalty by "
        "mini-batch AdaGrad on one core, for a time that suits a demo. On all texts, 19 minutes "
        "with an ℓ₁ penalty gave 10.8 % error, 4.4 µs and 1 MB "
        "(benchmarks/results/peers_icd10cm.md)."
    )
    return Group(table, Text(note))


def examples(tree: FrozenTree, data: TextSplit, rows: Rows) -> Text:
    """Return test texts, evenly spaced over the chapters, each with the tree's top three."""
    n_test = len(data.texts_test)
    n_shown = min(_N_EXAMPLES, n_test)
    shown = np.linspace(0, n_test, n_shown, endpoint=False, dtype=INDEX) + n_test // (2 * n_shown)
    ids, probabilities = tree.predict_topk(rows.split.X_test[shown], min(3, tree.n_classes))
    lines = [Text(f"What the tree says to {n_shown} of the test texts", "italic")]
    for i, top, top_p in zip(shown.tolist(), ids.tolist(), probabilities.tolist(), strict=True):
        lines += [Text(), Text(data.texts_test[i], "bold")]
        lines += _answer(data.y_test[i], [rows.categories[c] for c in top], top_p, data.titles)
    return Text("\n").join(lines)


def _answer(
    truth: str, top: Sequence[str], top_p: Sequence[float], titles: Mapping[str, str]
) -> list[Text]:
    """Return a line for each category; if the true one is not among them, one more for it."""
    lines = []
    for place, (category, p) in enumerate(zip(top, top_p, strict=True)):
        right = category == truth
        mark = "right" if right else "wrong" if place == 0 else ""
        style = "green" if right else "red" if place == 0 else ""
        lines.append(Text(f"  {mark:6} {100 * p:5.1f} %  {category} {titles[category]}", style))
    if truth not in top:
        lines.append(Text(f"  {'missed':14}  {truth} {titles[truth]}", "red"))
    return lines


def draw(figures: Mapping[str, Figures], path: Path | None = None) -> str:
    """Write the picture of error against latency.

    Parameters
    ----------
    figures : mapping of str to Figures
    path : Path, optional
        Where to; what is there is replaced. By default :data:`FIGURE`, unless a file of that name
        is there that the demo has not made.

    Returns
    -------
    line : str
        What was done, or why nothing was.
    """
    target = FIGURE if path is None else path
    try:
        from thinleaf.explain.frontier import write_frontier
    except ImportError as error:
        return f"There is no picture: {error}"
    if path is None and not _may_replace(target):
        return f"There is no picture: {target} is there, and not the demo's; see --figure"
    points = {name: (one.single_us or 0.0, one.error) for name, one in figures.items()}
    write_frontier(points, target, _FIGURE_TITLE)
    return f"Error against latency is drawn in {target}"


def _may_replace(path: Path) -> bool:
    """Whether there is nothing, or a picture that an earlier run has made."""
    if path.is_symlink() or path.exists():
        return path.is_file() and _FIGURE_TITLE.encode() in path.read_bytes()[:4096]
    return True


def run(
    console: Console,
    n_rows: int | None = None,
    *,
    say: Say = lambda line: None,
    verbose: bool = False,
) -> Outcome:
    """Run the demo.

    Parameters
    ----------
    console : Console
        Where to print results.
    n_rows : int, optional
        Train on the first rows only, for a quick look; by default on all.
    say : callable
        Gets a line of text at each stage.
    verbose : bool
        Whether models show their progress on standard error.
    """
    with Stopwatch() as watch:
        say("Reading ICD-10-CM")
        data = load_icd10cm()
        if n_rows is not None:
            data = first_rows(data, n_rows)
        rows = make_rows(data)
        n_train, n_features = rows.split.X_train.shape
        n_test, n_classes = len(data.y_test), len(data.titles)
        say(
            f"{n_train:,} training and {n_test:,} test texts, {n_classes:,} categories, "
            f"{n_features:,} tf-idf features"
        )
        outcome = compare(rows, data.texts_test, say, verbose=verbose)
        console.print(comparison_table(outcome, n_test, n_classes))
        console.print()
        console.print(examples(outcome.tree, data, rows), no_wrap=True, overflow="ellipsis")
    say(f"All of it took {watch.seconds:.0f} s")
    return outcome
