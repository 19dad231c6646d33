"""Mutated files, rows and texts through ``thinleaf.h`` under AddressSanitizer and UBSan.

``tests/native/fuzz.c`` mutates good files itself (gcc or clang); with clang it is also a target of
libFuzzer. Both go on where they were stopped: ``--state`` is a directory that keeps what was
counted, what libFuzzer has learned, and what was found. Counts are of one header: if it changes,
they begin anew. Start it again until it says that all is done; Ctrl-C loses one piece at most.
libFuzzer's time is that of the processor: a machine that does other things only makes it later.
"""

from __future__ import annotations

import hashlib
import json
import re
import resource
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks._report import arguments, table, write

ROOT = Path(__file__).parents[1]
HEADER = ROOT / "src" / "thinleaf" / "native" / "thinleaf.h"
SOURCE = ROOT / "tests" / "native" / "fuzz.c"
GOOD = ("tests/data/vectors/*.thinleaf", "tests/data/models/*.safetensors", "tests/native/corpus/*")
PIECE = 20_000
SECONDS = 120
SANITIZED = ("-g", "-O2", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@dataclass
class Progress:
    """What has been done with one header."""

    header: str
    cases: int = 0
    accepted: int = 0
    seconds: float = 0.0
    executions: int = 0
    features: int = 0
    pieces: int = 0
    findings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Path) -> Progress:
        """Return what a directory says, if that is of the header as it is now."""
        now = hashlib.sha256(HEADER.read_bytes() + SOURCE.read_bytes()).hexdigest()[:16]
        path = folder / "progress.json"
        kept = cls(**json.loads(path.read_text())) if path.exists() else cls(now)
        return kept if kept.header == now else cls(now)

    def save(self, folder: Path) -> None:
        """Write it whole, or not at all."""
        new = folder / "progress.json.new"
        new.write_text(json.dumps(asdict(self), indent=1))
        new.replace(folder / "progress.json")


def good_files() -> list[Path]:
    """Return what mutations start from."""
    return sorted(path for pattern in GOOD for path in ROOT.glob(pattern))


def program(folder: Path, progress: Progress, fuzzer: bool) -> Path | None:
    """Return the compiled driver, or None without a compiler that can."""
    compiler = shutil.which("clang") if fuzzer else shutil.which("gcc") or shutil.which("clang")
    target = folder / f"{'fuzzer' if fuzzer else 'mutations'}-{progress.header}"
    if compiler is None or target.exists():
        return target if target.exists() else None
    more = ["-fsanitize=fuzzer", "-DLIBFUZZER"] if fuzzer else []
    command = [compiler, "-std=c99", *SANITIZED, *more, f"-I{HEADER.parent}", str(SOURCE)]
    done = subprocess.run([*command, "-o", str(target), "-lm"], check=False)
    return target if done.returncode == 0 else None


def together(commands: list[list[str]]) -> list[tuple[int, str, str]]:
    """Run programs at the same time; return how each ended, and what it said."""
    running = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        for command in commands
    ]
    with ThreadPoolExecutor(len(running)) as readers:
        said = list(readers.map(subprocess.Popen.communicate, running))
    return [(own.returncode, *out) for own, out in zip(running, said, strict=True)]


def mutate(folder: Path, progress: Progress, cases: int, workers: int) -> Iterator[None]:
    """Run pieces of mutations until there were so many."""
    driver = program(folder, progress, fuzzer=False)
    while driver is not None and progress.cases < cases:
        first = 1 + progress.cases // PIECE
        seeds = range(first, min(first + workers, 1 - -cases // PIECE))
        files = [*map(str, good_files())]
        ended = together([[str(driver), str(PIECE), str(seed), *files] for seed in seeds])
        for seed, (code, out, err) in zip(seeds, ended, strict=True):
            found = re.search(r"(\d+) cases, (\d+) accepted", out)
            if code != 0 or found is None:
                progress.findings.append(f"mutations, seed {seed}: {_summary(err)}")
            progress.cases += PIECE
            progress.accepted += int(found[2]) if found else 0
        yield


def explore(folder: Path, progress: Progress, seconds: float, workers: int) -> Iterator[None]:
    """Run pieces of libFuzzer until it had so much time of the processor."""
    driver = program(folder, progress, fuzzer=True)
    corpus, crashes = folder / "corpus", folder / "crashes"
    for own in (corpus, crashes):
        own.mkdir(exist_ok=True)
    if not any(corpus.iterdir()):
        for path in good_files():
            if path.stat().st_size < 100_000:
                shutil.copy(path, corpus)
    while driver is not None and progress.seconds < seconds:
        piece = int(min(SECONDS, (seconds - progress.seconds) / workers)) + 1
        began = _processor_time()
        commands = [
            [
                str(driver), str(corpus), f"-max_total_time={piece}", "-max_len=65536",
                "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1",
                f"-artifact_prefix={crashes}/", f"-seed={progress.pieces + worker}",
                "-close_fd_mask=1",
            ]
            for worker in range(1, workers + 1)
        ]  # fmt: skip
        for code, _, said in together(commands):
            progress.pieces += 1
            ran = re.search(r"number_of_executed_units: (\d+)", said)
            progress.executions += int(ran[1]) if ran else 0
            progress.features = max(
                [progress.features, *map(int, re.findall(r"\bft: (\d+)", said))]
            )
            if code != 0:
                progress.findings.append(f"libFuzzer, piece {progress.pieces}: {_summary(said)}")
        progress.seconds += _processor_time() - began
        yield


def _processor_time() -> float:
    """Return the seconds of the processor that processes took which have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _summary(text: str) -> str:
    found = re.search(r"SUMMARY: .*", text)
    return found[0] if found else text.strip()[-300:]


def main() -> None:
    """Go on with both, piece by piece."""
    parser = arguments(__doc__)
    parser.set_defaults(data=Path())
    for action in parser._actions:
        action.required = False
    parser.add_argument("--state", type=Path, required=True, help="directory to go on from")
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3600.0, help="of libFuzzer")
    parser.add_argument("--workers", type=int, default=1, help="processes at the same time")
    parser.add_argument("--pieces", type=int, help="stop after so many, to go on later")
    options = parser.parse_args()
    options.state.mkdir(parents=True, exist_ok=True)
    progress = Progress.of(options.state)
    steps = (
        step
        for work in (
            mutate(options.state, progress, options.cases, options.workers),
            explore(options.state, progress, options.seconds, options.workers),
        )
        for step in work
    )
    for number, _ in enumerate(steps, 1):
        progress.save(options.state)
        print(
            f"{progress.cases:,} cases, {progress.accepted:,} accepted; libFuzzer "
            f"{progress.seconds:.0f} s, {progress.executions:,} runs; "
            f"{len(progress.findings)} findings",
            flush=True,
        )
        if number == options.pieces:
            return
    write(
        "native_fuzz",
        "Mutated files, rows and texts through thinleaf.h",
        "Under AddressSanitizer and UBSan, each file with dense rows, index and value pairs and "
        "texts, good and hostile ones, before and after `tl_check`; each also without memory.",
        table(
            ["what", "files", "accepted", "seconds", "features", "findings"],
            [
                ["mutations", progress.cases, progress.accepted, "", "", _count(progress, "mut")],
                ["libFuzzer", progress.executions, "", progress.seconds, progress.features,
                 _count(progress, "lib")],
            ],
        ),
        *progress.findings,
    )  # fmt: skip


def _count(progress: Progress, kind: str) -> int:
    return sum(finding.startswith(kind) for finding in progress.findings)


if __name__ == "__main__":
    main()
