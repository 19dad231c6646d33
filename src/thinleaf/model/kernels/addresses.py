"""Arrays by their address: what lets a kernel take a whole model as one argument.

Each array argument of a compiled function costs about 0.15 µs to unpack, and a read-only array (as
a memory-mapped file gives) is a signature of its own. A model therefore crosses the border between
Python and kernels as a single table of addresses. Whoever makes such a table keeps the arrays alive
as long as the table is used, and has checked every entry that a kernel indexes with.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _pointer_to(dtype: Any) -> Any:
    @intrinsic
    def pointer(typing_context, address):
        def generate(context, builder, signature, args):
            return builder.inttoptr(args[0], context.get_value_type(types.CPointer(dtype)))

        return types.CPointer(dtype)(types.int64), generate

    return pointer


float32_at = _pointer_to(types.float32)
float64_at = _pointer_to(types.float64)
int8_at = _pointer_to(types.int8)
int32_at = _pointer_to(types.int32)
int64_at = _pointer_to(types.int64)
uint8_at = _pointer_to(types.uint8)
uint16_at = _pointer_to(types.uint16)
uint64_at = _pointer_to(types.uint64)


def _half_to_float(typing_context, bits):
    """Return the float32 of the bits of a float16."""

    def generate(context, builder, signature, args):
        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


def _n_ones(typing_context, bits):
    """Return how many bits of a number are set."""

    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


half_to_float: Any = intrinsic(_half_to_float)
n_ones: Any = intrinsic(_n_ones)


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
fetch: Any = intrinsic(_fetch)
