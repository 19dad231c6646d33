"""Bytes by their address: how kernels read texts and tables of terms.

A ``bytes`` object is the cheapest way to hand a text to a kernel, and an address the one form in
which parts of kernels share it. Whoever passes an address keeps the memory alive.
"""

# mypy: disable-error-code="no-untyped-call, no-untyped-def"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
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


def _fetch(typing_context, address):
    """Have the memory at an address brought near; it will be read soon."""

    def generate(context, builder, signature, args):
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        name = "llvm.prefetch.p0" if _OPAQUE else "llvm.prefetch.p0i8"
        prefetch = cgutils.get_or_insert_function(builder.module, kind, name)
        flags = [number(0), number(3), number(1)]  # to be read, to be kept, data
        builder.call(prefetch, [builder.inttoptr(args[0], byte), *flags])
        return context.get_dummy_value()

    return types.void(types.int64), generate


_OPAQUE = not hasattr(ir.IntType(8).as_pointer(), "pointee")

address_of: Any = intrinsic(_address_of)
eight_bytes_at: Any = intrinsic(_eight_bytes_at)
fetch: Any = intrinsic(_fetch)
