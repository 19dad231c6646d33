"""Trees in the place of the output layers of small language models, part by part.

Parts, each with a result of its own, to be run one after the other (``states`` first, for each
network; it goes on where it stopped). What the full layer says of the states and trained heads are
kept in ``--models``, too, so that a part that is run again begins with what it measures:

- ``states``: downloads the network and collects hidden states into ``--models``;
- ``agreement``: how often the best class is kept, beside other short lists of the same size;
- ``texts``: the agreement report, by kind of text;
- ``build``: minutes to make a head, given states;
- ``speed``: µs of the layer and tokens a second of ``generate``, beside dense layers;
- ``exact``: agreement and time of the exact mode;
- ``draft``: accepted length of speculative decoding;
- ``table4``: paper 001, table 4, with leaves that reuse the rows of the LSTM's output layer.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import rc_context
from torch import nn

from benchmarks import torch_lm
from benchmarks._head_models import KINDS, LENGTH, NETWORKS, collect, load, stored
from benchmarks._head_peers import Clusters, fixed_list
from benchmarks._records import known
from benchmarks._report import RESULTS, table, write
from benchmarks.papers.paper001_table4 import hidden_states
from thinleaf.explain.agreement import plot_agreement
from thinleaf.measuring.latency import Stopwatch, single_latency
from thinleaf.torch import (
    FullAnswers,
    TreeHead,
    agreement_report,
    draft_report,
    full_answers,
    replace_head,
)
from thinleaf.torch.heads.rows import RowKind

SIZES = (500, 1000, 2000)
N_TEST = 10_240
N_EXACT = {"novels": 20_480}
N_GENERATED = 32
N_AGREED = 2048
N_TIMED = 100


def label(kind: str, part: str) -> str:
    """Return the name of a text's states."""
    return f"{kind}_{part}" if kind in ("novels", "ptb") else kind


class Given:
    """A network's output layer, training states and test states, as far as they were collected."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.name, self.models = options.network, options.models
        self.weight = np.load(self.models / f"{self.name}_W.npy", mmap_mode="r")
        self.layer = nn.Linear(*self.weight.shape[::-1], bias=False)
        self.layer.weight = nn.Parameter(torch.from_numpy(self.weight.copy()), requires_grad=False)
        limit = {"novels": 2 * options.states // 3, "ptb": options.states // 3}
        train = [self.states(f"{kind}_train", n)[0] for kind, n in limit.items()]
        self.train = np.concatenate(train)
        self.mixture = "train_" + "_".join(str(len(part)) for part in train)
        self.limit = options.tests

    def answers(self, text: str, states: np.ndarray) -> FullAnswers:
        """Return what the full layer says, which is kept in a file."""
        path = self.models / f"{self.name}_{text}_{len(states)}.npz"
        if not path.exists():
            found = full_answers(states, self.layer.weight, None)
            np.savez(path, classes=found.classes, logits=found.logits, log_norm=found.log_norm)
        stored = np.load(path)
        return FullAnswers(stored["classes"], stored["logits"], stored["log_norm"])

    def states(self, text: str, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first states of a text, and the tokens that followed."""
        states, followed = stored(self.name, text, self.models, self.weight.shape[1])
        return np.array(states[:n], dtype=np.float32), followed[:n]

    def tests(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return states of all kinds of text."""
        return {kind: self.states(label(kind, "test"), self.limit) for kind in KINDS}

    def head(self, size: int, **settings: Any) -> TreeHead:
        """Return a head, trained now."""
        answers = self.answers(self.mixture, self.train)
        return replace_head(self.layer, self.train, size=size, answers=answers, **settings)

    def kept_head(self, size: int, n_sweeps: int, rows: RowKind = "float32") -> TreeHead:
        """Return a head that is kept in a file."""
        path = self.models / f"{self.name}_{self.mixture}_{size}_{n_sweeps}.thinleaf"
        if not path.exists():
            self.head(size, n_sweeps=n_sweeps).save(path)
        return TreeHead.load(path, self.layer, rows=rows)


def report(part: str, options: argparse.Namespace, title: str, *parts: str) -> None:
    """Write the result of a part, for a network."""
    write("heads", title, *parts, suffix=f"{part}_{options.network}")


def states(options: argparse.Namespace) -> None:
    """Collect what the other parts need."""
    wanted = {("novels", "train"): 2 * options.states // 3, ("ptb", "train"): options.states // 3}
    tests = {(kind, "test"): max(options.tests, N_EXACT.get(kind, 0)) for kind in KINDS}
    collect(options.network, tests | wanted, options.models, options.data)


def agreement(options: argparse.Namespace) -> None:
    """Compare short lists of the same size; sizes that the result has are not run again."""
    name = f"heads_agreement_{options.network}"
    given = Given(options)
    n_classes = len(given.weight)
    records = [r for r in known(name) if r["states"] == len(given.train)]
    tests = {kind: states for kind, (states, _) in given.tests().items()}
    best = {kind: given.answers(label(kind, "test"), states).best for kind, states in tests.items()}
    train = given.answers(given.mixture, given.train)
    clusters: dict[str, Clusters] = {}
    columns = ["list", "size", "states", "rows", *(f"{kind} %" for kind in KINDS), "build s"]
    for size in options.sizes:
        if any(r["size"] == size for r in records):
            continue
        clusters = clusters or {
            found: Clusters(given.weight, equal=equal)
            for found, equal in (("IVF", False), ("equal clusters", True))
        }
        with Stopwatch() as watch:
            head = given.head(size, n_sweeps=options.sweeps)
        rows: list[list[Any]] = []
        kept = [
            head.sets.keeps(head.routers.leaves_of(tests[kind]), best[kind][:, None], n_classes)
            for kind in KINDS
        ]
        right = [100 * float(part.mean()) for part in kept]
        rows.append(["tree", float(head.sets.sizes.mean()), right, watch.seconds])
        lists = [100 * fixed_list(train, best[kind], n_classes, size) for kind in KINDS]
        rows.append(["fixed list", float(size), lists, 0.0])
        for found, index in clusters.items():
            pairs = [index.agreement(tests[kind], best[kind], size) for kind in KINDS]
            read = float(np.mean([pair[1] for pair in pairs]))
            rows.append([found, read, [100 * pair[0] for pair in pairs], 0.0])
        for found, read, shares, seconds in rows:
            values = [found, size, len(given.train), read, *shares, seconds]
            records.append(dict(zip(columns, values, strict=True)))
        records.sort(key=lambda r: r["size"])
        report(
            "agreement",
            options,
            f"{given.name}: how often the full layer's token is kept",
            f"{len(given.train):,} training states of novels and Penn Treebank, "
            f"{options.tests:,} test states of each text; code and Bible verses are foreign. Rows "
            "of clusters count their centres. The fixed list is the better of two, by first "
            "places and by probability.",
            table(columns, [[r[column] for column in columns] for r in records]),
        )


def texts(options: argparse.Namespace) -> None:
    """Write the agreement report of one head, and its figure; times are in ``speed``."""
    given = Given(options)
    head = given.kept_head(options.size, options.sweeps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = agreement_report(head, given.tests(), timed=False).to_dict()
    picture = RESULTS / f"heads_texts_{options.network}.svg"
    with rc_context({"svg.hashsalt": picture.stem}):
        plot_agreement(found).figure.savefig(picture, metadata={"Date": None})
    columns = [name for name, value in found["texts"][0].items() if value is not None]
    report(
        "texts",
        options,
        f"{given.name}: the agreement report, by kind of text",
        f"{len(given.train):,} training states, size {options.size:,}; on held-out training text "
        f"agreement is {100 * found['expected']:.2f} %. Perplexities are over all tokens, with "
        f"back-off outside leaves. ![]({picture.name})",
        table(columns, [[str(text[name]) if isinstance(text[name], bool) else text[name]
                         for name in columns] for text in found["texts"]]),
    )  # fmt: skip


def build(options: argparse.Namespace) -> None:
    """Time the making of a head."""
    given = Given(options)
    rows: list[list[Any]] = []
    for n in (len(given.train) // 4, len(given.train)):
        part = given.train[np.linspace(0, len(given.train) - 1, n).astype(int)]
        with Stopwatch() as full:
            answers = full_answers(part, given.layer.weight, None)
        with Stopwatch() as rest:
            head = replace_head(
                given.layer, part, size=options.size, n_sweeps=options.sweeps, answers=answers
            )
        assert head.trained_on is not None
        seconds = full.seconds + rest.seconds
        rows.append([n, head.n_leaves, full.seconds, rest.seconds, seconds / 60,
                     100 * head.trained_on.agreement])  # fmt: skip
        report(
            "build", options, f"{given.name}: minutes to build a head",
            f"Size {options.size:,}, {torch.get_num_threads()} threads.",
            table(["states", "leaves", "asking the full layer s", "training s", "minutes",
                   "held-out agreement %"], rows),
        )  # fmt: skip


def dense_int8(layer: nn.Linear) -> nn.Module:
    """Return PyTorch's own layer of 8 bits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(
            nn.Sequential(layer), {nn.Linear}, dtype=torch.qint8
        )


class FixedList(nn.Module):
    """A layer that scores the same classes always."""

    def __init__(self, layer: nn.Linear, classes: torch.Tensor) -> None:
        super().__init__()
        self.classes, self.n_classes = classes, layer.out_features
        self.rows = layer.weight.detach()[classes].contiguous()

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return logits of all classes."""
        out = states.new_full((*states.shape[:-1], self.n_classes), -torch.inf)
        out[..., self.classes] = nn.functional.linear(states, self.rows)
        return out


@torch.no_grad()
def speed(options: argparse.Namespace) -> None:
    """Time layers alone, and networks that generate with them."""
    given = Given(options)
    network, tokenizer = load(options.network, options.models)
    layer = network.get_output_embeddings()
    kinds: tuple[RowKind, ...] = ("float32", "bfloat16", "int8")
    heads: dict[str, TreeHead] = {
        rows: given.kept_head(options.size, options.sweeps, rows) for rows in kinds
    }
    heads["int8, exact"] = given.kept_head(options.size, options.sweeps, "int8")
    heads["int8, exact"].exact = True
    frequent = heads["float32"].sets.frequent.astype(np.int64)
    layers: dict[str, nn.Module] = {
        "dense float32": layer,
        "dense int8": dense_int8(layer),
        "fixed list float32": FixedList(layer, torch.from_numpy(np.sort(frequent))),
        **{f"tree {rows}": head for rows, head in heads.items()},
    }
    test = torch.from_numpy(given.states(label("novels", "test"), N_AGREED)[0])
    full = given.answers(label("novels", "test"), test.numpy()).best
    words = tokenizer("It was a dark evening, and the old man", add_special_tokens=False).input_ids
    ids = torch.tensor([[*NETWORKS[options.network].bos, *words]])
    rows: list[list[Any]] = []
    for name, one in layers.items():
        torch.set_num_threads(2)
        some = 1 if one is layer else len(full)  # it agrees with itself, slowly
        kept = [int(one(test[i : i + 1]).argmax()) == full[i] for i in range(some)]
        row: list[Any] = [name, 100 * float(np.mean(kept))]
        for threads in (1, 2):
            torch.set_num_threads(threads)
            samples = [(test[i].view(1, 1, -1),) for i in range(N_TIMED)]
            row.append(single_latency(one, samples).median)
        for threads in (1, 2):
            torch.set_num_threads(threads)
            row.append(tokens_a_second(network, one, ids))
        rows.append(row)
        print(row, flush=True)
        part = "speed" if options.size == SIZES[-1] else f"speed_{options.size}"
        report(
            part, options, f"{given.name}: the layer alone, and tokens a second",
            f"Size {options.size:,}; agreement on {N_AGREED:,} states of novels. `generate` of "
            f"{N_GENERATED} tokens, greedily, best of three.",
            table(["layer", "agreement %", "µs, 1 thread", "µs, 2 threads", "tokens/s, 1 thread",
                   "tokens/s, 2 threads"], rows),
        )  # fmt: skip
    network.lm_head = layer


def tokens_a_second(network: Any, layer: nn.Module, ids: torch.Tensor) -> float:
    """Return the speed of ``generate`` with an output layer."""
    network.lm_head = layer
    watch = Stopwatch()
    for _ in range(3):
        with watch:
            network.generate(
                ids, attention_mask=torch.ones_like(ids), do_sample=False,
                max_new_tokens=N_GENERATED, min_new_tokens=N_GENERATED,
            )  # fmt: skip
    return N_GENERATED / min(watch.runs)


@torch.no_grad()
def exact(options: argparse.Namespace) -> None:
    """Check the exact mode on many tokens, and time it."""
    given = Given(options)
    head = given.kept_head(options.size, options.sweeps, "int8")
    head.exact = True
    rows: list[list[Any]] = []
    n_all = n_same = 0
    for kind in KINDS:
        n = options.tests if options.tests < N_TEST else N_EXACT.get(kind, N_TEST)
        states = given.states(label(kind, "test"), n)[0]
        tensors = torch.from_numpy(states)
        head.exact_counts = type(head.exact_counts)()
        torch.set_num_threads(2)
        best = given.answers(label(kind, "test"), states).best
        torch.set_num_threads(1)
        same = head.predict(tensors).numpy() == best
        for i in np.flatnonzero(~same):  # in a batch, sums are taken in another order
            same[i] = bool(head.predict(tensors[i]) == given.layer(tensors[i]).argmax())
        counts, n = head.exact_counts, len(same)
        found = [kind, n, 100 * float(same.mean()), 100 * counts.n_certified / n,
                 counts.n_rescored / n, 100 * counts.n_full / n]  # fmt: skip
        samples = [(tensors[i],) for i in np.linspace(0, n - 1, 2 * N_TIMED).astype(int)]
        times = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            dense = single_latency(lambda state: given.layer(state).argmax(), samples[:N_TIMED])
            mine = single_latency(head.predict, samples)
            times += [dense.median, mine.median, dense.median / mine.median]
        rows.append([*found, *times])
        n_all, n_same = n_all + n, n_same + int(same.sum())
        print(rows[-1], flush=True)
        report(
            "exact", options, f"{given.name}: the exact mode",
            f"{n_same:,} of {n_all:,} tokens are those of the full layer, which is asked for a "
            "state alone. Times are of one state, those with a fall-back included.",
            table(["text", "tokens", "agreement %", "certified at once %",
                   "rows rescored a token", "full layer asked %",
                   *(f"{name}, {threads}" for threads in ("1 thread", "2 threads")
                     for name in ("dense float32 µs", "exact µs", "speed-up"))], rows),
        )  # fmt: skip


def draft(options: argparse.Namespace) -> None:
    """Compare accepted lengths."""
    given = Given(options)
    rows: list[list[Any]] = []
    for size in options.sizes:
        head = given.head(size, n_sweeps=options.sweeps)
        for kind, (states, _) in given.tests().items():
            sequences = states.reshape(-1, LENGTH, states.shape[1])
            for greedy in (True, False):
                found = draft_report(head, sequences, greedy=greedy)
                rows.append([size, kind, "greedy" if greedy else "sampling", found.tree,
                             found.fixed, 100 * found.tree / found.full,
                             100 * found.fixed / found.full])  # fmt: skip
    report(
        "draft", options, f"{given.name}: accepted length of five proposals",
        "A drafter that is right whenever its list has the token: what lists alone cost.",
        table(["size", "text", "by", "tree", "fixed list", "tree, % of full",
               "fixed, % of full"], rows),
    )  # fmt: skip


def table4(options: argparse.Namespace) -> None:
    """Put trees in the place of an LSTM's softmax."""
    chosen = ["--data", str(options.data), "--threads", "1", "--epochs", str(options.epochs)]
    if options.tokens:
        chosen += ["--tokens", str(options.tokens)]
    given = torch_lm.options_of(__doc__).parse_args(chosen)
    torch.set_num_threads(given.threads)
    text, ids = torch_lm.read_text(given)
    path = options.models / f"lstm_{given.epochs}_{text['train'].numel()}.pt"
    if path.exists():
        network = torch_lm.Model(len(ids), torch_lm.Flat(given.hidden, len(ids)), given)
        network.load_state_dict(torch.load(path, weights_only=True))
    else:
        network, _ = torch_lm.trained("flat", text, len(ids), given, torch_lm.new_clocks())
        torch.save(network.state_dict(), path)
    train, test = (hidden_states(network, text[part], given.length) for part in ("train", "test"))
    layer = network.output.linear.requires_grad_(False)
    X, y = torch.from_numpy(test[0]), test[1]
    torch.set_num_threads(1)
    samples = [(X[i],) for i in range(200)]
    best = torch.cat([layer(part).argmax(dim=1) for part in X.split(2048)]).numpy()
    dense = single_latency(lambda state: layer(state).argmax(), samples).median
    rows: list[list[Any]] = [["softmax", len(ids), 100 * float(np.mean(best != y)), 100.0, dense,
                              1.0, 0.0]]  # fmt: skip
    n = min(len(train[0]), options.states)
    some = train[0][np.linspace(0, len(train[0]) - 1, n).astype(int)]
    answers = full_answers(some, layer.weight, layer.bias)
    for size in (100, 200, 400, 800):
        with Stopwatch() as watch:
            head = replace_head(layer, some, size=size, n_sweeps=options.sweeps, answers=answers)
        found = torch.cat([head.predict(part) for part in X.split(2048)]).numpy()
        mine = single_latency(head.predict, samples).median
        rows.append([f"tree, {size}", size, 100 * float(np.mean(found != y)),
                     100 * float(np.mean(found == best)), mine, dense / mine,
                     watch.seconds])  # fmt: skip
        columns = ["output", "rows", "top-1 error %", "agreement %", "µs", "times faster"]
        write(
            "heads", "Paper 001, table 4, with leaves that reuse the LSTM's rows",
            f"LSTM of {given.hidden} hidden states, {given.epochs} epochs, {len(ids):,} words; "
            f"tested on {len(y):,}; heads of {n:,} of {len(train[0]):,} training states. The paper "
            "has 74.5 against 74.3 %, 5 times faster. One thread.",
            table([*columns, "build s"], rows), suffix="table4",
        )  # fmt: skip


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "states": states,
    "agreement": agreement,
    "texts": texts,
    "build": build,
    "speed": speed,
    "exact": exact,
    "draft": draft,
    "table4": table4,
}


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, required=True)
    parser.add_argument("--data", type=Path, help="directory of data sets")
    parser.add_argument("--models", type=Path, help="directory of networks and states")
    parser.add_argument("--network", choices=NETWORKS, default="smollm2")
    parser.add_argument("--states", type=int, default=300_000, help="training states")
    parser.add_argument("--tests", type=int, default=N_TEST, help="test states of each text")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--size", type=int, default=2000)
    parser.add_argument("--sweeps", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=6, help="of table 4's LSTM")
    parser.add_argument("--tokens", type=int, help="of its training text; by default all")
    options = parser.parse_args()
    PARTS[options.part](options)


if __name__ == "__main__":
    main()
