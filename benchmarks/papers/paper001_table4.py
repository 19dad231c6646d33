"""Paper 001, table 4: softmax trees on the last hidden states of an LSTM, Penn Treebank.

The network of ``benchmarks.torch_lm`` is trained with a flat softmax, fewer epochs than the paper's
40. Then its hidden states are rows, the next words their classes: softmax trees are trained on one
of ``--every`` training rows, as the paper does without overlap, and an AST with it. ε is chosen on
the validation text.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import torch_lm
from benchmarks._report import read, table, write
from benchmarks.papers._language import COLUMNS, Rows, language_figures
from benchmarks.papers._section import (
    Check,
    Section,
    at_most,
    by_name,
    lower,
    lower_error,
    number,
)
from thinleaf import AdaptiveSoftmaxTreeClassifier, SoftmaxTreeClassifier
from thinleaf.measuring.latency import Stopwatch, batch_latency

RESULT = "papers_paper001_table4"
PAPER = {  # top-1, top-5, perplexity, coverage, smoothed perplexity, depth, ms
    "softmax": (74.3, 54.8, 96, 100, 96, 0, 0.346),
    "ST(k=50)": (75.2, 57.3, 9, 59, 287, 8, 0.046),
    "ST(k=200)": (74.9, 56.2, 18, 70, 201, 6, 0.067),
    "ST(k=800)": (74.5, 55.5, 33, 81, 145, 4, 0.069),
}
N_TEST = 82_000
TREE: dict[str, Any] = {
    "init": "class_clusters",
    "router_ridge": 3.0,
    "leaf_ridge": 3.0,
    "tol": 1e-3,
    "random_state": 0,
    "n_jobs": 1,
}
MODELS: dict[str, Any] = {
    "ST(k=50)": SoftmaxTreeClassifier(8, 50, max_sweeps=3, overlap=None, **TREE),
    "ST(k=200)": SoftmaxTreeClassifier(6, 200, max_sweeps=3, overlap=None, **TREE),
    "ST(k=800)": SoftmaxTreeClassifier(4, 800, max_sweeps=2, overlap=None, **TREE),
    "AST": AdaptiveSoftmaxTreeClassifier(
        0.7, decisions="training", initial_depth=6, initial_contraction=0.04, max_rounds=1,
        max_sweeps=2, expansion_sweeps=2, **TREE,
    ),
}  # fmt: skip
HEADERS = ["", *COLUMNS, "fit s"]


@torch.no_grad()
def hidden_states(model: torch_lm.Model, text: Tensor, length: int) -> Rows:
    """Return the last hidden state at each word of a text, and the word after it."""
    model.eval()
    states, targets, state = [], [], None
    for words, target in torch_lm.batches(text, length):
        hidden, state = model(words, state)
        states.append(hidden.numpy())
        targets.append(target.reshape(-1).numpy())
    return np.concatenate(states), np.concatenate(targets)


def flat_row(model: torch_lm.Model, test: Rows, text: Tensor, length: int) -> list[Any]:
    """Return the row of the network's own softmax; a prediction is argmax(Wh + b) in NumPy."""
    layer = model.output.linear
    W, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    top1, top5 = torch_lm.top_errors(model, text, length, n_batches=10**9)
    perplexity = math.exp(torch_lm.loss_of(model, text, length, torch_lm.new_clocks()))
    few = test[0][:5000]
    batch = batch_latency(lambda: (few @ W.T + b).argmax(axis=1), len(few))
    return ["softmax", top1, top5, perplexity, 100.0, perplexity, 0, 1, float(len(b)),
            float(W.size), batch.median, "–"]  # fmt: skip


def main() -> None:
    """Train the network, then a tree of each kind; the report is written after each."""
    parser = torch_lm.options_of(__doc__)
    parser.add_argument("--every", type=int, default=4, help="take one of so many training rows")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    text, ids = torch_lm.read_text(options)
    network, _ = torch_lm.trained("flat", text, len(ids), options, torch_lm.new_clocks())
    train, valid, test = (
        hidden_states(network, text[part], options.length) for part in ("train", "valid", "test")
    )
    X, y = (part[:: options.every] for part in train)
    rows = [flat_row(network, test, text["test"], options.length)]
    for name, model in MODELS.items():
        with Stopwatch() as watch:
            model.fit(X, y)
        rows.append([name, *language_figures(model, valid, test), watch.seconds])
        print(rows[-1], flush=True)
        write(
            "papers.paper001_table4",
            "Paper 001, table 4: softmax trees on the output of an LSTM",
            f"LSTM of two layers, {options.hidden} hidden states, {options.epochs} epochs; "
            f"{len(ids):,} words; trees trained on {len(y):,} of {len(train[1]):,} rows, tested on "
            f"{len(test[1]):,}. µs of batches, one thread. `{TREE}`",
            table(HEADERS, rows),
        )


def section() -> Section:
    """Return the paper's numbers beside ours."""
    result = read(RESULT)
    ours = by_name(result.tables[0])
    checks: list[Check] = []
    flat = ours["softmax"]
    why = "less text, fewer epochs and fewer rows than in the paper"
    for name, (top1, top5, _, _, smooth, _, _) in PAPER.items():
        if name in ours:
            row = ours[name]
            checks += [
                at_most(f"{name}: top-1 error", top1, row["top-1 error %"], why),
                at_most(f"{name}: top-5 error", top5, row["top-5 error %"], why),
                at_most(f"{name}: smoothed perplexity", smooth, row["smoothed perplexity"], why,
                        ""),
            ]  # fmt: skip
    trees = [name for name in PAPER if name in ours and name != "softmax"]
    wide = ours[trees[-1]]
    covered = [ours[name]["coverage %"] for name in trees]
    why = "trees see a part of the rows only, the network's softmax all of them"
    checks += [
        Check("coverage rises with k", "59, 70, 81 %", ", ".join(map(number, covered)) + " %",
              covered == sorted(covered)),
        lower("the ST of largest k is faster than the softmax", "0.069 against 0.346 ms",
              wide["µs a row"], flat["µs a row"], unit=" µs"),
        lower("covered rows have a far lower perplexity", "33 against 96",
              wide["perplexity of covered rows"], flat["smoothed perplexity"]),
        lower_error("its error is less than that of the softmax and a point", "74.5 and 74.3 %",
                    wide["top-1 error %"], flat["top-1 error %"] + 1, N_TEST, why),
    ]  # fmt: skip
    return Section(
        "Table 4: Penn Treebank with the output of an LSTM",
        [RESULT],
        "Penn Treebank with all words of the training text. Our network is trained on less text "
        "and for fewer epochs than the paper's, and trees on a part of its rows.",
        checks,
        result.parts,
    )


if __name__ == "__main__":
    main()
