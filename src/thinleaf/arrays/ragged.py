"""Ragged arrays: parts of different sizes in one array, behind offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from thinleaf._dtypes import OFFSET, AnyArray


def offsets(sizes: npt.ArrayLike, dtype: Any = OFFSET) -> AnyArray:
    """Return where parts of these sizes begin and end: part i is ``ptr[i]:ptr[i + 1]``."""
    sizes = np.asarray(sizes, dtype=dtype)
    ptr: AnyArray = np.zeros(sizes.size + 1, dtype=dtype)
    np.cumsum(sizes, dtype=dtype, out=ptr[1:])
    return ptr


def ranges(begin: AnyArray, sizes: AnyArray) -> AnyArray:
    """Return begin[0], begin[0] + 1, … (as many as sizes[0] says), begin[1], … in one array."""
    first = np.cumsum(sizes) - sizes
    out: AnyArray = np.arange(int(np.sum(sizes))) + np.repeat(begin - first, sizes)
    return out
