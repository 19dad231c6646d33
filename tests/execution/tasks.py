"""Functions that tests send to other processes: those must be able to import them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np


class OddError(Exception):
    """An error with two arguments, which pickle cannot make again from its message."""

    def __init__(self, what: str, where: int) -> None:
        super().__init__(f"{what} at {where}")


def triple(item: int) -> int:
    return 3 * item


def scaled(array: np.ndarray, item: int) -> float:
    return float(array.sum()) * item


def fails_at_two(item: int) -> int:
    if item == 2:
        raise ArithmeticError("two")
    return item


def fails_oddly(item: int) -> int:
    raise OddError("odd", item)


def is_writable(array: np.ndarray, item: np.ndarray) -> tuple[bool, bool, int]:
    return array.flags.writeable, item.flags.writeable, os.getpid()


def dies_once(item: tuple[str, int]) -> int:
    """Kill the process that runs it, the first time."""
    path, number = item
    if number == 1 and not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def always_dies(item: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return item


def waits(item: float) -> float:
    time.sleep(item)
    return item


def looked_up(table: Any, item: int) -> Any:
    return table[item]


def with_changes(table: dict[int, str], changes: list[dict[int, str]]) -> dict[int, str]:
    for change in changes:
        table = table | change
    return table
