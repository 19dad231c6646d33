"""Language models beside each other: flat softmax, and trees that are random, clustered, learned.

The paper's table 2 on novels100 or Penn Treebank. ``--tokens`` takes the first paragraphs with
about that many tokens, which keeps the flat softmax feasible. Rates are chosen on the validation
part, after training on the first ``--tune-tokens``; then the test part is reported. The report is
written after each kind.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._report import arguments, table, write
from thinleaf import LabelTreeLanguageModel
from thinleaf.measuring.latency import Stopwatch

STEMS = {"novels100": "novels", "ptb": "ptb"}
KINDS = ("flat", "balanced", "clustering", "learned")
HEADERS = ["tree", "rate", "valid", "test", "train ms a batch", "test ms a batch"]


def read(directory: Path, name: str, part: str, n_tokens: int | None) -> list[list[str]]:
    """Return the lines of a part, up to some number of tokens."""
    path = directory / name / f"{STEMS[name]}.{part}.txt.gz"
    out, n_seen = [], 0
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if n_tokens is not None and n_seen >= n_tokens:
                break
            words = line.split()
            out.append(words)
            n_seen += len(words)
    return out


def main() -> None:
    """Fit and test each kind."""
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=sorted(STEMS), default="novels100")
    parser.add_argument("--tokens", type=int, default=2_500_000)
    parser.add_argument("--test-tokens", type=int, default=100_000)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--rates", type=float, nargs="+", default=[0.02, 0.05, 0.1])
    parser.add_argument("--tune-tokens", type=int, help="of the training text, from its beginning")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--dim", type=int, default=200)
    parser.add_argument("--arity", type=int)
    parser.add_argument("--max-depth", type=int)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    train = read(options.data, options.set, "train", options.tokens)
    valid, test = (
        read(options.data, options.set, part, options.test_tokens) for part in ("valid", "test")
    )
    tuning = train if options.tune_tokens is None else first(train, options.tune_tokens)
    rows = []
    for kind in options.kinds:
        rate = options.rates[0]
        if len(options.rates) > 1:
            found = {r: fitted(kind, r, tuning, options).perplexity(valid) for r in options.rates}
            print(kind, found, flush=True)
            rate = min(found, key=lambda r: found[r])
        with Stopwatch() as fit:
            model = fitted(kind, rate, train, options)
        with Stopwatch() as watch:
            scores = model.log_likelihood(test)
        n_batches = int(model.word_count_.sum()) * options.epochs / options.batch_size
        ms = 1000 * options.batch_size * watch.seconds / scores.size
        rows.append(
            [kind, rate, model.perplexity(valid), model.perplexity(test),
             1000 * fit.seconds / n_batches, ms]
        )  # fmt: skip
        print(rows[-1], flush=True)
        tuned_on = "the same text" if tuning is train else f"{options.tune_tokens:,} of the tokens"
        text = (
            f"{int(model.word_count_.sum()):,} tokens, {len(model.vocabulary_):,} words, context "
            f"{model.n_context}, d = {options.dim}, {options.epochs} epochs, batches of "
            f"{options.batch_size}, {options.n_jobs} thread(s). Rates: the best of "
            f"{', '.join(f'{r:g}' for r in options.rates)} on the validation part after training "
            f"on {tuned_on}. Perplexities; ms of the whole model, R_k included."
        )
        write("language", f"Language models: {options.set}", text, table(HEADERS, rows),
              suffix=options.set)  # fmt: skip


def first(lines: list[list[str]], n_tokens: int) -> list[list[str]]:
    """Return the first lines, up to some number of tokens."""
    ends = np.cumsum([len(line) for line in lines])
    return lines[: int(np.searchsorted(ends, n_tokens)) + 1]


def fitted(
    kind: Any, rate: float, lines: list[list[str]], options: argparse.Namespace
) -> LabelTreeLanguageModel:
    """Return a model of a kind."""
    return LabelTreeLanguageModel(
        tree=kind, learning_rate=rate, dim=options.dim, epochs=options.epochs,
        arity=options.arity, max_depth=options.max_depth, n_jobs=options.n_jobs,
        batch_size=options.batch_size, min_count=5 if options.set == "novels100" else 1,
        random_state=0,
    ).fit(lines)  # fmt: skip


if __name__ == "__main__":
    main()
