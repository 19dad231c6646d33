"""The dtypes of every array in the library, chosen here and nowhere else."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

INDEX: Final = np.int32
"""Node, class, feature and row ids, and offsets of inputs with fewer than 2³¹ entries."""

OFFSET: Final = np.int64
"""Offsets into packed parameter arrays, which may hold more than 2³¹ entries, as inputs may."""

PARAM: Final = np.float32
"""Inputs and model parameters."""

SLOT: Final = np.uint16
"""Positions of classes within a leaf whose weights are sparse."""

ACCUM: Final = np.float64
"""Losses, objectives and every long sum."""

NO_CHILD: Final = -1
"""Entry of ``Tree.children`` where there is no child: a leaf has two of them."""

IndexArray: TypeAlias = NDArray[np.int32]
OffsetArray: TypeAlias = NDArray[np.int64]
ParamArray: TypeAlias = NDArray[np.float32]
AccumArray: TypeAlias = NDArray[np.float64]
SlotArray: TypeAlias = NDArray[np.uint16]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]
