"""Output layers of a small Transformer with more than 100,000 words.

The text is novels and Bible translations in turns; its vocabulary is every word of both training
parts. The network is a causal Transformer, trained by AdamW; embeddings and output layers are
trained by Adagrad, with sparse gradients where they have them; rates fall linearly to zero. For
each output layer, the setting is chosen at the middle rate by the validation loss after training on
fewer tokens, then the rate of that setting, further out as long as the best is at an edge; then
there is a run for each seed. Every run is a process of its own, so that memory is its own; runs
that the result has are not run again. "Sampled" is a softmax over all words that is trained on the
right word and some drawn ones, with the correction for how often each is drawn; perplexities are
those of the full softmax.

Times are of short runs, with ``--times``, which is to be called afterwards on a machine that has
nothing else to do: then runs before may go on beside other work. They are measured anew each time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import resource
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import islice, product, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks._records import Record, add_options, all_runs, known, means, missing
from benchmarks._report import arguments, write
from benchmarks.torch_lm import Flat
from thinleaf.measuring.latency import Stopwatch
from thinleaf.torch import LabelTreeSoftmax

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "adaptive": [{"cutoffs": cutoffs, "div_value": div_value} for cutoffs, div_value in product(
        ([2000, 20000], [1000, 10000, 40000]), (2.0, 4.0))],
    "sampled": [{"n_samples": n} for n in (512, 1024, 2048, 4096)],
    "label tree": [{"max_depth": depth, "shortlist": n} for depth, n in product((2, 3), (0, 2000))],
    "random tree": [{"max_depth": depth, "shortlist": n, "learned": False}
                    for depth, n in product((2, 3), (0, 2000))],
    "flat": [{}],
}  # fmt: skip
MIDDLE, FACTOR = 0.1, 3.0
"""Of rates."""

KEYS = ["phase", "head", "setting", "rate", "seed"]
TEXTS = ["novels", "Bible"]
ERRORS = ["valid", *TEXTS, "top-1 error %"]
TIMES = ["train ms", "of these, head forward", "test ms", "top-5 ms", "re-assignment s", "head MB",
         "peak MB"]  # fmt: skip
WORD = re.compile(r"\w+|[^\w\s]")


# -- text ------------------------------------------------------------------------------------------


def novels(directory: Path, part: str) -> Iterator[list[str]]:
    """Yield the lines of a part as words."""
    path = directory / "novels100" / f"novels.{part}.txt.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield [*line.split(), "</s>"]


def verses(directory: Path, part: str) -> Iterator[list[str]]:
    """Yield verses as words; the validation part is the end of the training file."""
    path = directory / "bible_verse" / f"{'test' if part == 'test' else 'train'}.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            if part == "test" or (i % 50 == 0) == (part == "valid"):
                yield [*WORD.findall(line.split("\t", 1)[1].lower()), "</s>"]


def prepare(directory: Path, store: Path) -> None:
    """Write the texts as word ids, the most frequent word first, unless they are there."""
    if store.exists():
        return
    sources = {"novels": novels, "bible": verses}
    counts: Counter[str] = Counter()
    for source in sources.values():
        for line in source(directory, "train"):
            counts.update(line)
    ids = {word: rank for rank, (word, _) in enumerate(counts.most_common())}
    parts: dict[str, np.ndarray] = {"n_words": np.array(len(ids))}
    for part in ("train", "valid", "test"):
        for name, source in sources.items():
            found = (ids[word] for line in source(directory, part) for word in line if word in ids)
            parts[f"{name}_{part}"] = np.fromiter(found, dtype="i4")
    store.parent.mkdir(parents=True, exist_ok=True)
    np.savez(store, **parts)


def mixed(store: Path, part: str, n_tokens: int) -> np.ndarray:
    """Return tokens of both texts in turns of 4,096."""
    with np.load(store) as held:
        texts = [held[f"{name}_{part}"][: n_tokens // 2] for name in ("novels", "bible")]
    blocks = [[text[i : i + 4096] for i in range(0, text.size, 4096)] for text in texts]
    turns = zip_longest(*blocks, fillvalue=np.empty(0, dtype="i4"))
    return np.concatenate([block for turn in turns for block in turn])


def batches(text: np.ndarray, length: int, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield words and those after them, of shape (size, length)."""
    n = (text.size - 1) // (length * size) * length * size
    words = torch.from_numpy(text[:n].astype(np.int64)).reshape(size, -1, length)
    after = torch.from_numpy(text[1 : n + 1].astype(np.int64)).reshape(size, -1, length)
    for i in range(words.shape[1]):
        yield words[:, i], after[:, i]


# -- network ---------------------------------------------------------------------------------------


class Sampled(nn.Module):
    """A softmax over all words, trained on the right ones and on words that are drawn."""

    def __init__(self, dim: int, n_words: int, n_samples: int) -> None:
        super().__init__()
        self.weight = nn.Embedding(n_words, dim, sparse=True)
        self.bias = nn.Embedding(n_words, 1, sparse=True)
        nn.init.zeros_(self.weight.weight)
        self.n_words, self.n_samples = n_words, n_samples
        # words that are hardly drawn stay where they are: there, they should not be all alike
        self.bias.weight.data[:, 0] = self._expected(torch.arange(n_words))

    def _expected(self, words: Tensor) -> Tensor:
        """Return the logarithm of how often words are drawn, by Zipf's law."""
        share = torch.log1p(1.0 / (words + 1.0)) / math.log(self.n_words + 1)
        return torch.log(self.n_samples * share)

    def forward(self, rows: Tensor, target: Tensor) -> tuple[None, Tensor]:
        if not self.training:
            return None, nn.functional.nll_loss(self.log_prob(rows), target)
        drawn = torch.exp(torch.rand(self.n_samples) * math.log(self.n_words + 1)).long() - 1
        drawn = drawn.clamp(0, self.n_words - 1)
        right = (rows * self.weight(target)).sum(dim=1) + self.bias(target)[:, 0]
        others = rows @ self.weight(drawn).T + self.bias(drawn)[:, 0] - self._expected(drawn)
        others = others.masked_fill(drawn[None] == target[:, None], -torch.inf)
        scores = torch.cat([(right - self._expected(target))[:, None], others], dim=1)
        return None, nn.functional.cross_entropy(scores, torch.zeros_like(target))

    def log_prob(self, rows: Tensor) -> Tensor:
        return torch.log_softmax(rows @ self.weight.weight.T + self.bias.weight[:, 0], dim=1)


class Network(nn.Module):
    """Embeddings, a causal Transformer and an output layer."""

    def __init__(self, n_words: int, head: nn.Module, spec: dict[str, Any]) -> None:
        super().__init__()
        dim, length = spec["dim"], spec["length"]
        self.embedding = nn.Embedding(n_words, dim, sparse=True)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.place = nn.Parameter(0.01 * torch.randn(length, dim))
        layer = nn.TransformerEncoderLayer(
            dim, spec["n_heads"], 4 * dim, spec["dropout"], batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, spec["layers"], enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.mask = nn.Transformer.generate_square_subsequent_mask(length)
        self.head = head

    def hidden(self, words: Tensor) -> Tensor:
        """Return the state of each word, of shape (n, dim)."""
        inside = self.embedding(words) + self.place
        out = self.norm(self.body(inside, mask=self.mask, is_causal=True))
        return out.reshape(-1, out.shape[2])


def head_of(kind: str, setting: dict[str, Any], dim: int, n_words: int, seed: int) -> nn.Module:
    if kind == "flat":
        return Flat(dim, n_words)
    if kind == "adaptive":
        return nn.AdaptiveLogSoftmaxWithLoss(dim, n_words, **setting)
    if kind == "sampled":
        return Sampled(dim, n_words, **setting)
    return LabelTreeSoftmax(dim, n_words, sparse=True, seed=seed, **setting)


class Run:
    """One network, trained and tested."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        torch.set_num_threads(spec["threads"])
        torch.manual_seed(spec["seed"])
        with np.load(spec["store"]) as held:
            n_words = int(held["n_words"])
        setting = json.loads(spec["setting"])
        head = head_of(spec["head"], setting, spec["dim"], n_words, spec["seed"])
        self.network = Network(n_words, head, spec)
        outer = [*self.network.embedding.parameters(), *head.parameters()]
        known_already = {id(parameter) for parameter in outer}
        body = [p for p in self.network.parameters() if id(p) not in known_already]
        self.body = body
        self.optimizers = [torch.optim.Adagrad(outer, lr=spec["rate"]),
                           torch.optim.AdamW(body, lr=spec["body_rate"])]  # fmt: skip
        self.watches = {name: Stopwatch() for name in ("step", "head", "test", "top", "update")}

    def train(self) -> None:
        """Take all steps; a tree that is learned is re-assigned in the first half."""
        spec, network = self.spec, self.network
        text = mixed(Path(spec["store"]), "train", spec["tokens"])
        every = list(batches(text, spec["length"], spec["batch_size"]))
        learned = getattr(network.head, "learned", False)
        n_updates = spec["assignments"] if learned else 0
        cuts = set(np.linspace(0, len(every) // 2, n_updates + 1).astype(int)[1:].tolist())
        network.train()
        for at, (words, target) in enumerate(every):
            for optimizer, rate in zip(
                self.optimizers, (spec["rate"], spec["body_rate"]), strict=True
            ):
                optimizer.param_groups[0]["lr"] = rate * (1.0 - at / len(every))
                optimizer.zero_grad()
            with self.watches["step"]:
                hidden = network.hidden(words)
                with self.watches["head"]:
                    loss = network.head(hidden, target.reshape(-1))[1]
                loss.backward()
                nn.utils.clip_grad_norm_(self.body, 1.0)
                for optimizer in self.optimizers:
                    optimizer.step()
            if at + 1 in cuts:
                with self.watches["update"]:
                    network.head.update_tree()

    @torch.no_grad()
    def loss(self, text: np.ndarray) -> float:
        """Return the mean negative log-likelihood of a text."""
        spec, total, n = self.spec, 0.0, 0
        self.network.eval()
        for words, target in batches(text, spec["length"], spec["test_batch_size"]):
            hidden = self.network.hidden(words)
            with self.watches["test"]:
                loss = self.network.head(hidden, target.reshape(-1))[1]
            total, n = total + float(loss) * target.numel(), n + target.numel()
        return total / max(n, 1)

    @torch.no_grad()
    def top_error(self, text: np.ndarray, n_batches: int = 30) -> float:
        """Return the top-1 error in percent on the first batches, the best five being found."""
        spec, right, n = self.spec, 0, 0
        self.network.eval()
        head = self.network.head
        some = batches(text, spec["length"], spec["test_batch_size"])
        for words, target in islice(some, n_batches):
            hidden = self.network.hidden(words)
            with self.watches["top"]:
                if isinstance(head, LabelTreeSoftmax):
                    top = head.topk(hidden, 5)[0]
                else:
                    top = head.log_prob(hidden).topk(5, dim=1).indices
            right += int((top[:, 0] == target.reshape(-1)).sum())
            n += target.numel()
        return 100.0 * (1.0 - right / max(n, 1))

    def result(self) -> Record:
        """Train, and return all figures."""
        spec, store = self.spec, Path(self.spec["store"])
        with Stopwatch() as watch:
            self.train()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        n_test = spec["test_tokens"]
        out: Record = {"valid": math.exp(self.loss(mixed(store, "valid", n_test)))}
        with np.load(store) as held:
            tests = {"novels": held["novels_test"][:n_test], "Bible": held["bible_test"][:n_test]}
        if spec["phase"] != "tune":
            out |= {name: math.exp(self.loss(text)) for name, text in tests.items()}
            out["top-1 error %"] = self.top_error(mixed(store, "test", n_test))
            out["top-5 ms"] = 1000 * self.watches["top"].median
        weights = sum(p.numel() * p.element_size() for p in self.network.head.parameters())
        return out | {
            "train ms": 1000 * self.watches["step"].median,
            "of these, head forward": 1000 * self.watches["head"].median,
            "test ms": 1000 * self.watches["test"].median,
            "re-assignment s": self.watches["update"].median, "head MB": 1e-6 * weights,
            "peak MB": peak, "fit s": watch.seconds,
        }  # fmt: skip


# -- runs ------------------------------------------------------------------------------------------


def best_trial(records: list[Record], head: str, **of: Any) -> Record:
    """Return setting and rate of the trial with the lowest validation perplexity."""
    of |= {"phase": "tune", "head": head}
    trials = [r for r in records if all(r[key] == value for key, value in of.items())]
    best = min(trials, key=lambda r: float(r["valid"]))
    return {key: best[key] for key in ("head", "setting", "rate")}


def tuning(records: list[Record], head: str, seed: int) -> Iterator[Record]:
    """Yield trials of an output layer; ``records`` has those before when the next is asked for.

    All settings at the middle rate, then rates of the best one until the best is at no edge.
    """
    trial = {"phase": "tune", "head": head, "seed": seed, "rate": MIDDLE}
    for setting in SETTINGS[head]:
        yield trial | {"setting": json.dumps(setting)}
    best = best_trial(records, head, rate=MIDDLE)
    rates = [MIDDLE]
    while best["rate"] in (rates[0], rates[-1]):
        lower = [rates[0] / FACTOR] if best["rate"] == rates[0] else []
        upper = [rates[-1] * FACTOR] if best["rate"] == rates[-1] else []
        for rate in (*lower, *upper):
            yield trial | best | {"rate": float(f"{rate:.2g}")}
        rates = [float(f"{rate:.2g}") for rate in (*lower, *rates, *upper)]
        best = best_trial(records, head, setting=best["setting"])


def wanted(records: list[Record], options: argparse.Namespace) -> Iterator[Record]:
    """Yield trials, then the runs of the best settings, a seed after the other."""
    for head in options.heads:
        yield from tuning(records, head, options.seeds[0])
    for seed in options.seeds:
        for head in options.heads:
            yield {"phase": "test", "seed": seed} | best_trial(records, head)


def timed(records: list[Record], options: argparse.Namespace) -> Iterator[Record]:
    """Yield the best settings as far as they were found, and a softmax over all words."""
    seed = options.seeds[0]
    for head in options.heads:
        if any(r["phase"] == "tune" and r["head"] == head for r in records):
            yield {"phase": "times", "seed": seed} | best_trial(records, head)
    yield {"phase": "times", "seed": seed, "head": "flat", "setting": "{}", "rate": MIDDLE}


def in_process(spec: dict[str, Any]) -> Record:
    """Do one run in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.transformer_heads", "--data", ".", "--child"]
    done = subprocess.run([*command, json.dumps(spec)], check=True, stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Run what is missing, and write the report after each run."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--store", type=Path, default=Path(tempfile.gettempdir()) / "transformer_heads.npz"
    )
    parser.add_argument("--heads", nargs="+", choices=SETTINGS,
                        default=["adaptive", "sampled", "label tree", "random tree"])  # fmt: skip
    parser.add_argument("--times", action="store_true", help="measure times alone, after the runs")
    parser.add_argument("--tokens", type=int, default=500_000)
    parser.add_argument("--tune-tokens", type=int, default=100_000)
    parser.add_argument("--timed-tokens", type=int, default=60_000)
    parser.add_argument("--test-tokens", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--n-heads", type=int, default=4, help="of attention")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--test-batch-size", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--body-rate", type=float, default=1e-3)
    parser.add_argument("--assignments", type=int, default=10, help="of a tree, in the first half")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--suffix", default="")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    add_options(parser, 3)
    options = parser.parse_args()
    if options.child:
        warnings.filterwarnings("ignore", message="Sparse invariant checks")
        print(json.dumps(Run(json.loads(options.child)).result()))
        return
    prepare(options.data, options.store)
    with np.load(options.store) as held:
        n_words = int(held["n_words"])
    name = "transformer_heads" + (f"_{options.suffix}" if options.suffix else "")
    records = known(name)
    shared = {key: getattr(options, key) for key in (
        "dim", "layers", "n_heads", "length", "batch_size", "test_batch_size", "dropout",
        "body_rate", "assignments", "threads", "test_tokens")}  # fmt: skip
    if options.times:
        records = [record for record in records if record["phase"] != "times"]
    tokens = {"tune": options.tune_tokens, "test": options.tokens, "times": options.timed_tokens}
    runs = timed(records, options) if options.times else wanted(records, options)
    for keys in missing(records, runs, options.minutes):
        size = {"tokens": tokens[keys["phase"]], "store": str(options.store)}
        if keys["phase"] == "tune":
            size["test_tokens"] = options.test_tokens // 2
        elif keys["phase"] == "times":
            size["test_tokens"] = 32 * options.length * options.test_batch_size
        records.append(keys | in_process(shared | keys | size))
        report(records, n_words, options)


def report(records: list[Record], n_words: int, options: argparse.Namespace) -> None:
    """Write what there is."""
    tests, short = ([r for r in records if r["phase"] == phase] for phase in ("test", "times"))
    parts: list[Any] = [
        f"{n_words:,} words; {options.tokens:,} tokens of training, {options.tune_tokens:,} for "
        f"trials, {options.test_tokens:,} of each text for tests; Transformer of {options.layers} "
        f"layers, dimension {options.dim}, contexts of {options.length}, batches of "
        f"{options.batch_size}; {options.threads} thread(s). Perplexities.",
        means(tests, ["head", "setting", "rate"], ERRORS, TEXTS),
    ]
    if short:
        parts += [
            "## Times and memory",
            f"Of runs of {options.timed_tokens:,} tokens; medians of ms a batch, of "
            f"{options.test_batch_size} contexts in tests. Flat is a softmax over all words.",
            means(short, ["head", "setting"], TIMES),
        ]
    loaded = (
        "Times here are not to be compared: a machine may do other work meanwhile. "
        "A trial has no figures of tests, a run for times no perplexities that mean anything."
    )
    every = all_runs(records, [*KEYS, *ERRORS, *TIMES, "fit s"])
    write("transformer_heads", "Output layers of a Transformer", *parts, "## All runs", loaded,
          every, suffix=options.suffix)  # fmt: skip


if __name__ == "__main__":
    main()
