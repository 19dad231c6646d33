"""Requests that are broken or mean harm: each must be refused, or its connection closed."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from benchmarks._http import request

HEAD = b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
PATIENCE = 15.0


def _noise(rng: random.Random, n: int) -> bytes:
    return rng.randbytes(rng.randrange(1, n))


def _mutated(rng: random.Random) -> bytes:
    """Return a good body with bytes that JSON cannot have there."""
    body = bytearray(json.dumps({"texts": ["a text", "another"], "top_k": 2}).encode())
    for _ in range(rng.randrange(1, 4)):
        body.insert(rng.randrange(1, len(body)), rng.choice(b"\x00\x01\xff\xfe"))
    return bytes(body)


def _nested(rng: random.Random) -> bytes:
    return rng.choice([b"[", b'{"a":', b'{"texts":[']) * rng.randrange(2000, 100_000)


def _wrong_type(rng: random.Random) -> bytes:
    value = rng.choice([None, True, 3, -1.5, [], {}, ["a", 3], [[]], {"text": "a"}, 10**40])
    name = rng.choice(["text", "texts"])
    return json.dumps({name: value}).encode()


def _wrong_option(rng: random.Random) -> bytes:
    options: list[tuple[str, Any]] = [
        ("top_k", 0), ("top_k", -3), ("top_k", 10**30), ("top_k", "2"), ("top_k", [1]),
        ("proba", "yes"), ("proba", 1), ("min_proba", 2), ("min_proba", -1e300),
        ("min_proba", None), ("limit", 3), ("__class__", "x"), ("\ud800", 1), ("", ""),
    ]  # fmt: skip
    name, value = rng.choice(options)
    return json.dumps({"text": "a", name: value}).encode()


def _constants(rng: random.Random) -> bytes:
    return b'{"text": "a", "min_proba": %s}' % rng.choice(
        [b"NaN", b"Infinity", b"1e999", b"-1e999"]
    )


BODIES: dict[str, Callable[[random.Random], bytes]] = {
    "noise": lambda rng: _noise(rng, 2000),
    "mutated JSON": _mutated,
    "cut JSON": lambda rng: b'{"texts": ["a text", "another"]}'[: rng.randrange(1, 30)],
    "nested deeply": _nested,
    "wrong type": _wrong_type,
    "wrong option": _wrong_option,
    "NaN and infinity": _constants,
    "digits": lambda rng: b'{"text": "a", "top_k": ' + b"9" * rng.randrange(5000, 90_000) + b"}",
    "not UTF-8": lambda rng: b'{"text": "\xff' + _noise(rng, 50).replace(b'"', b"") + b'"}',
    "surrogates": lambda rng: b'{"text": "\\ud8%02x"}' % rng.randrange(256),
    "field twice": lambda rng: b'{"text": "a", "text": "b"}',
    "empty batch": lambda rng: b'{"texts": []}',
    "too many": lambda rng: json.dumps({"texts": ["a"] * rng.randrange(1025, 3000)}).encode(),
    "empty": lambda rng: b" " * rng.randrange(5),
}
"""Bodies of requests that HTTP has nothing against."""

RAW: dict[str, Callable[[random.Random], bytes]] = {
    "no HTTP": lambda rng: b"\x16\x03\x01" + _noise(rng, 500) + b"\r\n\r\n",
    "no such method": lambda rng: b"BREW /predict HTTP/1.1\r\nhost: x\r\n\r\n",
    "no such path": lambda rng: request(b"{}", f"/{rng.random()}"),
    "wrong method": lambda rng: b"PUT /predict HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n",
    "no type": lambda rng: b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}",
    "wrong length": lambda rng: HEAD + b"content-length: -%d\r\n\r\n{}" % rng.randrange(1, 99),
    "two lengths": lambda rng: HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    "broken chunks": lambda rng: HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "endless head": lambda rng: b"GET / HTTP/1.1\r\n" + b"x-a: b\r\n" * 30_000,
}
"""Bytes that are hardly requests."""

ABANDONED = "abandoned half-way"
HUGE = "10 MB"
KINDS = (*BODIES, *RAW, ABANDONED, HUGE)


async def attack(port: int, kind: str, rng: random.Random) -> str:
    """Send one; return what came of it: a status, "closed" or "hung"."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return "refused to connect"
    try:
        async with asyncio.timeout(PATIENCE):
            if kind in BODIES:
                writer.write(request(BODIES[kind](rng)))
            elif kind in RAW:
                writer.write(RAW[kind](rng))
            elif kind == HUGE:
                writer.write(request(b'{"text": "' + b"a" * 10_000_000 + b'"}'))
            else:
                writer.write(HEAD + b'content-length: 5000\r\n\r\n{"text": "')
                await writer.drain()
                return "left"
            await writer.drain()
            head = await reader.read(65536)
            return head[9:12].decode() if head.startswith(b"HTTP/1.1 ") else "closed"
    except OSError:
        return "closed"
    except TimeoutError:
        return "hung"
    finally:
        writer.transport.abort()


async def attack_all(port: int, n: int, concurrency: int = 8) -> Counter[tuple[str, str]]:
    """Send many of all kinds, a huge one among a hundred; return outcomes by kind."""
    found: Counter[tuple[str, str]] = Counter()
    numbers = iter(range(n))

    async def attacker() -> None:
        for number in numbers:
            rng = random.Random(number)
            kind = HUGE if number % 100 == 99 else rng.choice(KINDS[:-1])
            found[kind, await attack(port, kind, rng)] += 1

    await asyncio.gather(*(attacker() for _ in range(concurrency)))
    return found


def harmless(outcome: str) -> bool:
    """Return whether an attack was refused, or its connection closed."""
    return outcome in ("closed", "left") or outcome.startswith("4")
