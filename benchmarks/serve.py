"""``thinleaf serve`` under load from a second process: speed, attacks, other models, a kill.

Every answer is compared with that of the model whose version it names: label and probability, to
the last bit. A request is lost if its connection ends without an answer. At the kill those in
flight are: what was sent before the process was gone. Memory is what the server says of itself, in
MB.
"""

from __future__ import annotations

import asyncio
import hashlib
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import _hostile
from benchmarks._data import read_tsv
from benchmarks._http import Connection, Outcome, Server, get, load, memory, request
from benchmarks._report import arguments, table, write
from thinleaf import SoftmaxTreeClassifier, TextClassifier

BATCH = 64
N_TEXTS = 4096
WATCH = 0.05


class Known:
    """Two models, their files, and what each answers.

    Parameters
    ----------
    folder : Path
        Where files are made.
    train, test : (labels, texts)
    """

    def __init__(self, folder: Path, train: Any, test: Any) -> None:
        labels, texts = train
        self.texts = list(test[1])[:N_TEXTS]
        self.path = folder / "model.thinleaf"
        self.files: list[bytes] = []
        self.answers: dict[str, list[tuple[Any, float]]] = {}
        for depth in (5, 4):
            tree = SoftmaxTreeClassifier(depth=depth, max_sweeps=2, random_state=0, n_jobs=-1)
            model = TextClassifier(tree, features="words").fit(texts, labels).freeze()
            model.save(self.path)
            content = self.path.read_bytes()
            top, p = model.predict_topk(self.texts, 1)
            version = hashlib.sha256(content).hexdigest()[:16]
            self.files.append(content)
            self.answers[version] = list(zip(top[:, 0].tolist(), p[:, 0].tolist(), strict=True))
        self.n_classes = model.n_classes
        self.replace(0)

    def replace(self, number: int) -> None:
        """Put a model in place, as ``save`` does."""
        self.write(self.files[number % len(self.files)])

    def write(self, content: bytes) -> None:
        """Put any content in place by renaming."""
        aside = self.path.with_suffix(".new")
        aside.write_bytes(content)
        aside.replace(self.path)

    def single(self) -> list[bytes]:
        """Return a request for each text."""
        return [request({"text": text, "proba": True}) for text in self.texts]

    def batches(self) -> list[bytes]:
        """Return requests for all texts, so many each."""
        return [request({"texts": part, "proba": True}) for part in self._parts()]

    def _parts(self) -> list[list[str]]:
        return [self.texts[i : i + BATCH] for i in range(0, len(self.texts), BATCH)]

    def right(self, number: int, answer: Any) -> bool:
        """Return whether the answer to a request for one text is the model's."""
        known = self.answers.get(answer["model"])
        return known is not None and known[number] == (answer["label"], answer["probability"])

    def right_batch(self, number: int, answer: Any) -> bool:
        """Return whether the answer to a batch is the model's."""
        known = self.answers.get(answer["model"])
        if known is None:
            return False
        given = [(one["label"], one["probability"]) for one in answer["predictions"]]
        return given == known[number * BATCH : (number + 1) * BATCH]


async def speed(known: Known, port: int, seconds: float) -> list[list[Any]]:
    """Return requests a second and latencies."""
    rows: list[list[Any]] = []
    for what, requests, check in (
        ("one text", known.single(), known.right),
        (f"batch of {BATCH}", known.batches(), known.right_batch),
    ):
        for concurrency in (1, 8, 32):
            await _for(known, port, requests, check, concurrency, min(1.0, seconds))
            outcome = await _for(known, port, requests, check, concurrency, seconds)
            n = len(outcome.seconds)
            rate = n / seconds
            per_text = rate * (1 if what == "one text" else BATCH)
            latencies = [outcome.percentile(q) for q in (50, 99, 99.9)]
            rows.append([what, concurrency, rate, per_text, *latencies, outcome.n_wrong,
                         len(outcome.lost)])  # fmt: skip
    return rows


async def _for(
    known: Known, port: int, requests: Any, check: Any, concurrency: int, seconds: float
) -> Outcome:
    outcome, end = Outcome(), time.perf_counter() + seconds
    await load(port, requests, check, concurrency, lambda: time.perf_counter() > end, outcome)
    return outcome


class Load:
    """Good requests that go on in the background, single ones and batches."""

    def __init__(self, known: Known, port: int, concurrency: int = 4) -> None:
        self.outcome, self._ended = Outcome(), False
        kinds = ((known.single(), known.right), (known.batches(), known.right_batch))
        self._tasks = [
            asyncio.create_task(load(port, requests, check, n, lambda: self._ended, self.outcome))
            for (requests, check), n in zip(kinds, (concurrency, 1), strict=True)
        ]

    async def end(self) -> Outcome:
        """Let the last requests be answered."""
        self._ended = True
        await asyncio.gather(*self._tasks)
        return self.outcome


async def hostile(known: Known, port: int, n: int) -> tuple[list[Any], list[list[Any]]]:
    """Return what became of good requests, and of hostile ones by kind."""
    good = Load(known, port)
    found = await _hostile.attack_all(port, n)
    outcome = await good.end()
    rows = []
    for kind in _hostile.KINDS:
        outcomes = {said: m for (name, said), m in sorted(found.items()) if name == kind}
        harm = sum(m for said, m in outcomes.items() if not _hostile.harmless(said))
        said = ", ".join(f"{said}: {m}" for said, m in outcomes.items())
        rows.append([kind, sum(outcomes.values()), said, harm])
    return ["hostile requests", *_row(outcome)], rows


async def replacements(known: Known, port: int, n: int) -> list[Any]:
    """Return what became of requests while models changed; every tenth file is a broken one."""
    good = Load(known, port)
    for number in range(n):
        if number % 10 == 9:
            known.write(known.files[0][: 1000 + number])
            await asyncio.sleep(3 * WATCH)
        known.replace(number + 1)
        await _taken_up(port, known, number + 1)
    return ["replacements", *_row(await good.end())]


async def _taken_up(port: int, known: Known, number: int) -> None:
    """Wait for the model that is in place to answer."""
    wanted = hashlib.sha256(known.files[number % 2]).hexdigest()[:16].encode()
    for _ in range(1200):
        if wanted in await get(port, "/health"):
            return
        await asyncio.sleep(WATCH)
    raise SystemExit("a model was not taken up within a minute")


async def killed(
    known: Known, server: Server, options: tuple[str, ...]
) -> tuple[list[Any], Server]:
    """Return what became of requests when the server was killed and started again."""
    good = Load(known, server.port)
    await asyncio.sleep(1.0)
    server.process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(server.process.communicate)
    gone = time.perf_counter()
    again = await asyncio.to_thread(Server, known.path, *options, port=server.port)
    await asyncio.sleep(1.0)
    outcome = await good.end()
    in_flight = [sent for sent in outcome.lost if sent < gone]
    outcome.lost = [sent for sent in outcome.lost if sent >= gone]
    return [f"kill -9 and restart, {len(in_flight)} in flight", *_row(outcome)], again


def _row(outcome: Outcome) -> list[Any]:
    others = {status: n for status, n in outcome.statuses.items() if status != 200}
    return [
        len(outcome.seconds), outcome.n_wrong, len(outcome.lost), str(others or "–"),
        len(outcome.models), outcome.percentile(99),
    ]  # fmt: skip


async def measure(known: Known, options: Any) -> list[str]:
    """Return the parts of the report."""
    flags = ("--watch", str(WATCH))
    server = await asyncio.to_thread(Server, known.path, *flags)
    try:
        port = server.port
        assert (await Connection(port).ask(known.single()[0]))[0] == 200
        speeds = await speed(known, port, options.seconds)
        sizes = [["after the measurement of speed", await memory(port)]]
        row, kinds = await hostile(known, port, options.hostile)
        rows = [row]
        sizes.append([f"after {options.hostile:,} hostile requests", await memory(port)])
        for part in range(2):
            n = (options.replacements + part) // 2
            row = await replacements(known, port, n)
            rows.append([f"{n} {row[0]}", *row[1:]])
            sizes.append([f"after {n} replacements", await memory(port)])
        row, server = await killed(known, server, flags)
        rows.append(row)
    finally:
        code = server.end()
    return [
        f"{options.set}, {known.n_classes:,} classes, model files of "
        f"{len(known.files[0]) / 1e6:.1f} and {len(known.files[1]) / 1e6:.1f} MB. "
        f"The server ended with exit code {code} after SIGTERM.",
        "## Speed",
        table(["request", "connections", "requests / s", "texts / s", "p50 ms", "p99 ms",
               "p99.9 ms", "wrong", "lost"], speeds),
        "## Under attack\n\nWhat became of good requests meanwhile: one text on four connections, "
        f"batches of {BATCH} on a fifth. Those in flight at the kill are not counted as lost.",
        table(["", "answered", "wrong", "lost", "other statuses", "models", "p99 ms"], rows),
        "## Hostile requests\n\nBy status, or what became of the connection. Harm is whatever is "
        "neither refused (4xx) nor closed.",
        table(["kind", "sent", "outcomes", "harm"], kinds),
        "## Memory of the server",
        table(["", "MB"], sizes),
    ]  # fmt: skip


def main() -> None:
    """Train two models, and serve them."""
    parser = arguments(__doc__)
    parser.add_argument("--set", default="icd10cm", help="a set of texts")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement of speed")
    parser.add_argument("--hostile", type=int, default=10_000, help="hostile requests")
    parser.add_argument("--replacements", type=int, default=100, help="of the model file")
    options = parser.parse_args()
    folder = options.data / options.set
    with tempfile.TemporaryDirectory() as temporary:
        known = Known(
            Path(temporary), read_tsv(folder / "train.tsv.gz"), read_tsv(folder / "test.tsv.gz")
        )
        parts = asyncio.run(measure(known, options))
    write("serve", "Serving over HTTP", *parts)


if __name__ == "__main__":
    main()
