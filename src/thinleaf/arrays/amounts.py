"""Amounts of memory, as people write them. Nothing heavy is imported here."""

from __future__ import annotations

import re
from numbers import Integral
from typing import Any

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)


def as_bytes(amount: Any) -> int:
    """Return the bytes of ``"4G"``, ``"500 MB"`` or a number; all units are powers of 1,024.

    Raises
    ------
    ValueError
        If it is no amount of memory.
    """
    if isinstance(amount, Integral) and not isinstance(amount, bool) and int(amount) > 0:
        return int(amount)
    found = _AMOUNT.fullmatch(amount) if isinstance(amount, str) else None
    n_bytes = 0 if found is None else int(float(found[1]) * _UNITS[found[2].lower()])
    if n_bytes < 1:
        raise ValueError(
            f"max_memory must be a number of bytes, or a text such as '4G' or '500M', got "
            f"{amount!r}"
        )
    return n_bytes
