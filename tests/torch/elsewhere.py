"""A device that is none: tensors there cannot be mixed with those of the CPU, as on a GPU.

It bears the name of PyTorch's ``meta`` device, but its tensors hold values. In ``elsewhere()``,
code runs as it would where there is a GPU: what forgets to move a tensor fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("meta")
_MAY_MIX = ("_to_copy", "copy_", "index", "index_put", "index_put_")
"""Copies, and indices that may be on a CPU, too."""


class _There(Tensor):
    """A tensor of the device, which holds one of the CPU."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> _There:
        return Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
        )

    def __init__(self, held: Tensor) -> None:
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})

    def tolist(self) -> Any:
        return self.held.tolist()

    def numpy(self, **_: Any) -> Any:
        raise TypeError("a tensor of another device is no array: copy it to the CPU first")


def _held(value: Any) -> Any:
    return value.held if isinstance(value, _There) else value


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Do on the CPU what would be done there, once no two devices are mixed."""
    name = func.overloadpacket.__name__
    tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
    there = [value for value in tensors if isinstance(value, _There)]
    here = [value for value in tensors if not isinstance(value, _There) and value.dim()]
    if there and here and name not in _MAY_MIX:
        raise RuntimeError(f"{name}: tensors of two devices")
    to = kwargs.get("device")
    own = {key: _held(value) for key, value in kwargs.items()}
    if to is not None:
        own["device"] = "cpu"
    out = func(*tree_map(_held, args), **own)
    for value in there:  # what is done in place gives the tensor itself
        if value.held is out:
            return value
    stays = bool(there) if to is None else torch.device(to) == DEVICE
    wrap = stays and name != "_local_scalar_dense"
    return tree_map(
        lambda value: _There(value) if wrap and isinstance(value, Tensor) else value, out
    )


class _Elsewhere(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


@contextmanager
def elsewhere() -> Iterator[torch.device]:
    """Have a second device; there are no gradients, and no autocast."""
    with pytest.MonkeyPatch.context() as patch, _Elsewhere(), torch.no_grad():
        patch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
        yield DEVICE
