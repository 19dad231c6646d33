"""A small HTTP client over kept connections that takes little time and counts every outcome."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
PATIENCE = 30.0
"""Seconds without an answer after which a request counts as lost."""


class Server:
    """``thinleaf serve`` in a process of its own."""

    def __init__(self, path: Path, *options: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "thinleaf", "serve", str(path), "--port", str(port)]
        self.process = subprocess.Popen(
            [*command, *options], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert self.process.stderr is not None
        said = b""
        while not (found := re.search(rb"http://127\.0\.0\.1:(\d+)/", said)):
            line = self.process.stderr.readline()
            if not line:
                raise SystemExit(f"the server did not start: {said.decode()}")
            said += line
        self.port = int(found[1])

    def end(self) -> int:
        """Stop it; return its exit code."""
        self.process.terminate()
        self.process.communicate(timeout=60)
        return self.process.returncode


@dataclass
class Connection:
    """One connection, opened again after an error."""

    port: int
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Return the status and the body of an answer; ``OSError`` if there is none."""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        reader, writer = self.streams
        try:
            async with asyncio.timeout(PATIENCE):
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                length = LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
        except (OSError, EOFError, TimeoutError) as error:
            self.close()
            raise OSError(str(error)) from error
        if b"connection: close" in head.lower():
            self.close()
        return int(head[9:12]), body

    def close(self) -> None:
        """Close it."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


def request(content: Any, path: str = "/predict") -> bytes:
    """Return the bytes of a request."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    return head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body


async def get(port: int, path: str) -> bytes:
    """Return what a path has."""
    connection = Connection(port)
    status, body = await connection.ask(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    connection.close()
    assert status == 200
    return body


async def memory(port: int) -> float:
    """Return the megabytes of the server."""
    found = re.search(rb"^process_resident_memory_bytes (\d+)", await get(port, "/metrics"), re.M)
    assert found is not None
    return int(found[1]) / 1e6


@dataclass
class Outcome:
    """What became of requests."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    n_wrong: int = 0
    lost: list[float] = field(default_factory=list)  # when they were sent
    n_refused: int = 0
    models: Counter[str] = field(default_factory=Counter)

    def percentile(self, q: float) -> float:
        """Return a percentile of the latencies, in ms."""
        return 1e3 * float(np.percentile(self.seconds, q)) if self.seconds else float("nan")


Check = Callable[[int, Any], bool]


async def load(
    port: int,
    requests: Sequence[bytes],
    check: Check,
    concurrency: int,
    until: Callable[[], bool],
    outcome: Outcome,
) -> None:
    """Ask again and again over some connections, and compare every answer.

    Parameters
    ----------
    port : int
    requests : sequence of bytes
    check : callable
        Whether the answer to a request, by its number, is right.
    concurrency : int
        Connections, each with one request at a time.
    until : callable
        Says when to end.
    outcome : Outcome
    """

    async def client(begin: int) -> None:
        connection = Connection(port)
        number = begin
        while not until():
            number = (number + concurrency) % len(requests)
            if connection.streams is None:
                try:
                    connection.streams = await asyncio.open_connection(
                        "127.0.0.1", port, limit=1 << 24
                    )
                except OSError:  # nobody listens: nothing was sent, so nothing is lost
                    outcome.n_refused += 1
                    await asyncio.sleep(0.02)
                    continue
            started = time.perf_counter()
            try:
                status, body = await connection.ask(requests[number])
            except OSError:
                outcome.lost.append(started)
                continue
            outcome.seconds.append(time.perf_counter() - started)
            outcome.statuses[status] += 1
            answer = json.loads(body) if status == 200 else None
            if answer is None or not check(number, answer):
                outcome.n_wrong += 1
            else:
                outcome.models[answer["model"]] += 1
        connection.close()

    await asyncio.gather(*(client(i * 37 % len(requests)) for i in range(concurrency)))
