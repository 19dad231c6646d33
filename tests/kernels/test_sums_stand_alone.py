"""Loops of kernels whose sums may be reordered either store or sum, never both.

The compiler sums in lanes where it can. Does the loop also store, it first asks at run time whether
the arrays are near each other in memory, and if so sums one by one: bits would follow from where
arrays happen to lie, and a fit from one process to the next would differ.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import thinleaf

_REORDERING = {"kernel", "inlined"}
_EXACT = {"at", "n", "kept", "state"}
"""Names of counters and of bits, whose sums are exact, beside those that begin with ``n_``."""

_ONE_BY_ONE = {"_direction_by_columns"}
"""Steps one coordinate at a time, each after sums over a column, which are loops of their own."""


def found_in(source: str) -> list[str]:
    """Return the innermost loops in which a sum of floats is carried on and something is stored."""
    return [
        f"{kernel.name}, line {loop.lineno}"
        for kernel in ast.walk(ast.parse(source))
        if isinstance(kernel, ast.FunctionDef) and may_reorder(kernel)
        for loop in ast.walk(kernel)
        if isinstance(loop, (ast.For, ast.While)) and stores_and_sums(loop)
    ]


def may_reorder(function: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id in _REORDERING for d in function.decorator_list)


def stores_and_sums(loop: ast.For | ast.While) -> bool:
    within = [node for part in loop.body for node in ast.walk(part)]
    if any(isinstance(node, (ast.For, ast.While)) for node in within):
        return False
    summed = [node.target for node in within if isinstance(node, ast.AugAssign)]
    fresh = {name for node in within if isinstance(node, ast.Assign) for name in stored_names(node)}
    varying = fresh | {name for target in summed for name in stored_names(target) if is_exact(name)}
    if isinstance(loop, ast.For):
        varying |= stored_names(loop.target)
    stores = any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) for n in within)
    return stores and any(is_carried_on(target, varying) for target in summed)


def is_carried_on(target: ast.expr, varying: set[str]) -> bool:
    """Return whether each turn of a loop adds to the same number."""
    if isinstance(target, ast.Subscript):
        return not {n.id for n in ast.walk(target.slice) if isinstance(n, ast.Name)} & varying
    return not stored_names(target) & varying


def stored_names(node: ast.AST) -> set[str]:
    stored = (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return {name.id for name in stored}


def is_exact(name: str) -> bool:
    return name in _EXACT or name.startswith("n_")


def kernel_with(body: str) -> str:
    return f"@kernel\ndef f(x, out):\n    total = 0.0\n    for j in range(3):\n        {body}\n"


@pytest.mark.parametrize(
    "body",
    [
        "total += x[j]; out[j] = x[j]",
        "out[0] += x[j]",
        "out[j] = x[j]\n        if x[j] > 0.0:\n            total -= x[j]",
    ],
)
def test_such_a_loop_is_found(body):
    assert found_in(kernel_with(body)) == ["f, line 4"]


@pytest.mark.parametrize(
    "body", ["total += x[j]", "out[j] += x[j]", "n += 1; out[n] = x[j]", "k = i[j]; out[k] += x[j]"]
)
def test_others_are_not(body):
    assert found_in(kernel_with(body)) == []


def test_sums_stand_alone():
    sources = sorted(Path(thinleaf.__file__).parent.rglob("*.py"))
    found = [(path.name, where) for path in sources for where in found_in(path.read_text("utf-8"))]
    assert [both for both in found if both[1].split(",")[0] not in _ONE_BY_ONE] == []
