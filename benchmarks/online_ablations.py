"""Paper 002, sections 4.3 to 4.5: candidates, path features, the recall bound, order of examples.

On fontglyph1000 (the paper: ALOI) and on next-word prediction in novels100 from the six words
before (the paper: LTCB, a hundred times as many words). All other settings are the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._data import available, load, next_words
from benchmarks._report import arguments, table, write
from benchmarks.online import recall_tree

CANDIDATES = (1, 2, 4, 8, 16, 32, 64)
N_CONTEXT = 6
N_TEST = 50_000


class Stream:
    """Rows to learn, in order, and rows to test."""

    def __init__(self, train: tuple[Any, np.ndarray], test: tuple[Any, np.ndarray], passes: int):
        self.train, self.test, self.passes = train, test, passes

    def error(self, **settings: Any) -> float:
        """Return the test error of a Recall Tree, in percent."""
        clf = recall_tree(n_passes=self.passes, shuffle=False, **settings)
        error = 100 * (1 - clf.fit(*self.train).score(*self.test))
        print(settings, f"{error:.2f} %, {clf.n_nodes_} nodes", flush=True)
        return error


def glyphs(directory: Path, passes: int) -> Stream:
    """Return fontglyph1000 in a random order."""
    data = load(directory, "fontglyph1000")
    order = np.random.default_rng(0).permutation(data.y_train.size)
    train = data.X_train[order], data.y_train[order]
    return Stream(train, (data.X_test, data.y_test), passes)


def words(directory: Path, n_tokens: int) -> Stream:
    """Return the first words of novels100, once."""
    train, (X_test, y_test) = next_words(directory, N_CONTEXT, n_tokens)
    return Stream(train, (X_test[:N_TEST], y_test[:N_TEST]), 1)


def candidates(stream: Stream) -> str:
    """Return the table of figure 5b."""
    rows = []
    for n in CANDIDATES:
        with_path, without = (
            stream.error(max_candidates=n, path_features=path) for path in (True, False)
        )
        rows.append([n, with_path, without, without - with_path])
    headers = ["candidates F", "test error %", "without path features", "difference"]
    return table(headers, rows)


def bound(stream: Stream) -> str:
    """Return the table of section 4.5; without the bound a tree is to grow as it will."""
    rows = [
        [value, stream.error(bound_multiplier=value, max_routers=10**6)] for value in (1.0, 0.0)
    ]
    return table(["multiplier of the bound", "test error %"], rows)


def order(directory: Path, n_tokens: int) -> list[str]:
    """Return the table of figure 5a, progressive loss in order and permuted, and a note."""
    (X, y), _ = next_words(directory, N_CONTEXT, n_tokens)
    permuted = np.random.default_rng(0).permutation(y.size)
    curves = []
    for rows in (slice(None), permuted):
        clf = recall_tree().partial_fit(X[rows], y[rows])
        last = {"examples": clf.n_examples_, "loss": clf.progressive_loss_}
        curves.append([*clf.progress_, last])
        print(curves[-1][-1], flush=True)
    cells = [
        [int(a["examples"]), 100 * a["loss"], 100 * b["loss"]]
        for a, b in zip(*curves, strict=True)
        if a["examples"] >= 1000
    ]
    z = _z(cells[-1][1] / 100, cells[-1][2] / 100, y.size)
    return [
        table(["examples", "in order %", "permuted %"], cells),
        f"The difference at the end is {z:.0f} standard errors (two independent samples).",
    ]


def _z(a: float, b: float, n: int) -> float:
    mean = (a + b) / 2
    return (b - a) / float(np.sqrt(2 * mean * (1 - mean) / n))


def main() -> None:
    """Run the parts whose data is there."""
    parser = arguments(__doc__)
    parser.add_argument("--tokens", type=int, default=500_000, help="for candidates and bound")
    parser.add_argument("--order-tokens", type=int, default=3_000_000)
    parser.add_argument("--passes", type=int, default=3, help="over fontglyph1000")
    parser.add_argument("--parts", nargs="+", default=["glyphs", "words", "order"])
    options = parser.parse_args()
    sections = []
    if "glyphs" in options.parts and available(options.data, "fontglyph1000"):
        stream = glyphs(options.data, options.passes)
        sections += [
            f"## fontglyph1000, {options.passes} passes",
            candidates(stream),
            bound(stream),
        ]
    if available(options.data, "novels100"):
        if "words" in options.parts:
            stream = words(options.data, options.tokens)
            n_rows, n_words = stream.train[1].size, np.unique(stream.train[1]).size
            title = f"## novels100, {n_rows:,} rows, {n_words:,} next words, one pass"
            sections += [title, candidates(stream), bound(stream)]
        if "order" in options.parts:
            title = f"## novels100, the first {options.order_tokens:,} tokens: progressive loss"
            sections += [title, *order(options.data, options.order_tokens)]
    write("online_ablations", "Recall Tree: ablations of sections 4.3 to 4.5", *sections)


if __name__ == "__main__":
    main()
