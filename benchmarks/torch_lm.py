"""Output layers of an LSTM on Penn Treebank: flat softmax, adaptive softmax, learned label tree.

The network is that of paper 001, appendix C, after PyTorch's example: two layers, embeddings of 256
and 150 hidden states, sequences of 20, SGD at a rate of 20 that is divided by 4 when the validation
loss does not improve, gradients clipped at 0.25. It is trained for fewer epochs than the paper's
40, by default, the same for all; dropout is 0.2. The learned tree is re-assigned some times within
each epoch of the first half; it starts from the random one, which is there for comparison. With a
shortlist, the most frequent words are in a softmax of their own, as in the adaptive softmax.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks._report import arguments, table, write
from benchmarks.language import read
from thinleaf.measuring.latency import Stopwatch
from thinleaf.torch import LabelTreeSoftmax

KINDS = ("flat", "adaptive", "random tree", "learned tree", "learned tree, shortlist")
CUTOFFS = (2000,)
HEADERS = [
    "output", "epochs", "valid", "test", "top-1 error %", "top-5 error %", "train ms a batch",
    "test ms a batch", "of these, output: train", "test", "re-assignment ms", "fit s",
]  # fmt: skip


class Flat(nn.Module):
    """A softmax over all words, with the interface of the others."""

    def __init__(self, in_features: int, n_classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, n_classes)

    def forward(self, rows: Tensor, target: Tensor) -> tuple[None, Tensor]:
        return None, nn.functional.cross_entropy(self.linear(rows), target)

    def log_prob(self, rows: Tensor) -> Tensor:
        return torch.log_softmax(self.linear(rows), dim=1)


class Model(nn.Module):
    """Embeddings, LSTM and an output layer."""

    def __init__(self, n_words: int, output: nn.Module, options: argparse.Namespace) -> None:
        super().__init__()
        self.dropout = nn.Dropout(options.dropout)
        self.embedding = nn.Embedding(n_words, options.embedding)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.lstm = nn.LSTM(options.embedding, options.hidden, 2, dropout=options.dropout)
        self.output = output

    def forward(self, words: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Return the hidden state of each word, of shape (length · batch, hidden)."""
        out, state = self.lstm(self.dropout(self.embedding(words)), state)
        return self.dropout(out).reshape(-1, out.shape[2]), tuple(part.detach() for part in state)


def output_layer(kind: str, n_words: int, options: argparse.Namespace) -> nn.Module:
    if kind == "flat":
        return Flat(options.hidden, n_words)
    if kind == "adaptive":
        cutoffs = [cutoff for cutoff in options.cutoffs if cutoff < n_words]
        return nn.AdaptiveLogSoftmaxWithLoss(
            options.hidden, n_words, cutoffs, div_value=options.div_value
        )
    return LabelTreeSoftmax(
        options.hidden, n_words, options.arity, options.max_depth,
        criterion=options.criterion, inertia=options.inertia, max_share=options.max_share,
        learned=kind.startswith("learned"),
        shortlist=options.shortlist if kind.endswith("shortlist") else 0,
    )  # fmt: skip


def streams(lines: list[list[str]], ids: dict[str, int], n_streams: int) -> Tensor:
    """Return a text as parallel streams, of shape (length, n_streams); lines end in a sign."""
    flat = [ids[word] for line in lines for word in [*line, "</s>"] if word in ids]
    length = len(flat) // n_streams
    return torch.tensor(flat[: length * n_streams]).reshape(n_streams, length).T.contiguous()


def batches(text: Tensor, length: int) -> list[tuple[Tensor, Tensor]]:
    """Return words and the words after them."""
    starts = range(0, text.shape[0] - 1, length)
    return [(text[i : i + length][: text.shape[0] - 1 - i], text[i + 1 : i + 1 + length])
            for i in starts]  # fmt: skip


def train_epoch(
    model: Model, text: Tensor, rate: float, options: argparse.Namespace, n_updates: int,
    clocks: dict[str, Stopwatch],
) -> None:  # fmt: skip
    """Take a step for each batch; ``n_updates`` times, the tree is re-assigned."""
    model.train()
    every = batches(text, options.length)
    # not at the end: what has just moved would be judged before it is trained
    cuts = set(np.linspace(0, len(every), n_updates + 2).astype(int)[1:-1].tolist())
    state = None
    for at, (words, target) in enumerate(every):
        with clocks["train"]:
            hidden, state = model(words, state)
            with clocks["output"]:
                loss = model.output(hidden, target.reshape(-1))[1]
            model.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), options.clip)
            with torch.no_grad():
                for parameter in model.parameters():
                    if parameter.grad is not None:
                        parameter.add_(parameter.grad, alpha=-rate)
        if at + 1 in cuts:
            with clocks["update"]:
                model.output.update_tree()


@torch.no_grad()
def loss_of(model: Model, text: Tensor, length: int, clocks: dict[str, Stopwatch]) -> float:
    """Return the mean negative log-likelihood."""
    model.eval()
    total, state = 0.0, None
    for words, target in batches(text, length):
        with clocks["train"]:
            hidden, state = model(words, state)
            with clocks["output"]:
                loss = model.output(hidden, target.reshape(-1))[1]
        total += float(loss) * target.numel()
    return total / (text.numel() - text.shape[1])


@torch.no_grad()
def top_errors(model: Model, text: Tensor, length: int, n_batches: int = 200) -> list[float]:
    """Return the top-1 and the top-5 error in percent, on the first batches."""
    model.eval()
    n_words, hits, state = 0, np.zeros(2), None
    for words, target in batches(text, length)[:n_batches]:
        hidden, state = model(words, state)
        if isinstance(model.output, LabelTreeSoftmax):
            top = model.output.topk(hidden, 5)[0]
        else:
            top = model.output.log_prob(hidden).topk(5, dim=1).indices
        right = (top == target.reshape(-1, 1)).numpy()
        hits += [right[:, 0].sum(), right.sum()]
        n_words += right.shape[0]
    return (100 * (1 - hits / n_words)).tolist()


def new_clocks() -> dict[str, Stopwatch]:
    return {name: Stopwatch() for name in ("train", "output", "update")}


def trained(
    kind: str, text: dict[str, Tensor], n_words: int, options: argparse.Namespace,
    fit: dict[str, Stopwatch],
) -> tuple[Model, float]:  # fmt: skip
    """Return a trained network, and its loss on the validation text."""
    torch.manual_seed(0)
    model = Model(n_words, output_layer(kind, n_words, options), options)
    rate, best = options.rate, math.inf
    for epoch in range(options.epochs):
        learning = kind.startswith("learned") and epoch < (options.epochs + 1) // 2
        updates = options.assignments if learning else 0
        train_epoch(model, text["train"], rate, options, updates, fit)
        loss = loss_of(model, text["valid"], options.length, new_clocks())
        print(kind, epoch + 1, f"rate {rate:g}, valid {math.exp(loss):.2f}", flush=True)
        rate, best = (rate if loss < best else rate / 4), min(loss, best)
    return model, loss


def run(kind: str, text: dict[str, Tensor], n_words: int, options: argparse.Namespace) -> list[Any]:
    """Train and test one kind."""
    fit, test = new_clocks(), new_clocks()
    with Stopwatch() as watch:
        model, loss = trained(kind, text, n_words, options, fit)
    errors = top_errors(model, text["test"], options.length)
    perplexity = math.exp(loss_of(model, text["test"], options.length, test))
    layer = output_only(model.output, text["test"], n_words, options)
    return [kind, options.epochs, math.exp(loss), perplexity, *errors,
            1000 * fit["train"].median, 1000 * test["train"].median, *layer,
            1000 * fit["update"].median, watch.seconds]  # fmt: skip


def output_only(
    layer: nn.Module, text: Tensor, n_words: int, options: argparse.Namespace
) -> list[float]:
    """Return ms of the output layer alone, with the gradient and without it."""
    rows = torch.randn(options.length * options.batch_size, options.hidden)
    train, test = Stopwatch(), Stopwatch()
    layer.train()
    for _, target in batches(text, options.length)[:60]:
        labels = target.reshape(-1)
        point = rows[: labels.numel()].clone().requires_grad_()
        with train:
            layer.zero_grad()
            layer(point, labels)[1].backward()
    layer.eval()
    with torch.no_grad():
        for _, target in batches(text, options.length)[:60]:
            labels = target.reshape(-1)
            with test:
                layer(rows[: labels.numel()], labels)
    return [1000 * train.median, 1000 * test.median]


def options_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the network's options."""
    parser = arguments(description)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--tokens", type=int, help="of the training text, from its beginning")
    parser.add_argument("--test-tokens", type=int)
    parser.add_argument("--hidden", type=int, default=150)
    parser.add_argument("--embedding", type=int, default=256)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--clip", type=float, default=0.25)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--threads", type=int, default=1)
    return parser


def read_text(options: argparse.Namespace) -> tuple[dict[str, Tensor], dict[str, int]]:
    """Return the three parts as streams of word ids, and the ids: the most frequent word has 0."""
    lines = {
        "train": read(options.data, "ptb", "train", options.tokens),
        "valid": read(options.data, "ptb", "valid", options.test_tokens),
        "test": read(options.data, "ptb", "test", options.test_tokens),
    }
    words, counts = np.unique([w for line in lines["train"] for w in [*line, "</s>"]],
                              return_counts=True)  # fmt: skip
    ids = {str(words[i]): rank for rank, i in enumerate(np.argsort(-counts, kind="stable"))}
    return {name: streams(part, ids, options.batch_size) for name, part in lines.items()}, ids


def main() -> None:
    """Run all kinds, and write the report after each of them."""
    parser = options_of(__doc__)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--arity", type=int)
    parser.add_argument("--max-depth", type=int, default=2)
    parser.add_argument("--criterion", default="probability")
    parser.add_argument("--inertia", type=float, default=2.0)
    parser.add_argument("--max-share", type=float, default=1.5)
    parser.add_argument("--assignments", type=int, default=3, help="of the tree, in an epoch")
    parser.add_argument("--shortlist", type=int, default=1000, help="words of their own")
    parser.add_argument("--cutoffs", type=int, nargs="+", default=list(CUTOFFS))
    parser.add_argument("--div-value", type=float, default=4.0)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    text, ids = read_text(options)
    head = (
        f"{text['train'].numel():,} tokens, {len(ids):,} words; LSTM of two layers, embeddings of "
        f"{options.embedding}, {options.hidden} hidden states; batches of {options.batch_size} "
        f"sequences of {options.length}; {options.threads} thread(s). Adaptive softmax with "
        f"cutoffs {options.cutoffs} and div_value {options.div_value:g}; shortlist of "
        f"{options.shortlist:,} words. Perplexities; medians of "
        "ms of the whole network, and of the output layer alone, with its gradient and without."
    )
    rows: list[list[Any]] = []
    for kind in options.kinds:
        rows.append(run(kind, text, len(ids), options))
        some = "" if set(options.kinds) >= set(KINDS[:4]) else "some"
        write("torch_lm", "Output layers of an LSTM: ptb", head, table(HEADERS, rows), suffix=some)


if __name__ == "__main__":
    main()
