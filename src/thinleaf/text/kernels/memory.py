"""Bytes by their address: how kernels read texts and tables of terms.

A ``bytes`` object is the cheapest way to hand a text to a kernel, and an address the one form in
which parts of kernels share it. Whoever passes an address keeps the memory alive.
"""

# mypy: disable-error-code="no-untyped-call, no-untyped-def"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _address_of(typing_context, text):
    """Return the address of the first byte of a ``bytes`` object."""

    def generate(context, builder, signature, args):
        content = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.ptrtoint(content.data, ir.IntType(64))

    return types.int64(text), generate


def _eight_bytes_at(typing_context, address):
    """Return eight bytes from any address on, the first one as the lowest."""

    def generate(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(types.int64), generate


address_of: Any = intrinsic(_address_of)
eight_bytes_at: Any = intrinsic(_eight_bytes_at)
