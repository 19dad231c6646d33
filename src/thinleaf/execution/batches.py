"""How items become tasks: large ones alone and first, small ones together."""

from __future__ import annotations

from collections.abc import Sequence

_TASKS_PER_WORKER = 4
"""About as many tasks has each worker to do: more would balance better and cost more."""


def into_batches(n_items: int, costs: Sequence[float] | None, n_workers: int) -> list[list[int]]:
    """Return the items of each task, the costliest task first; by default, all cost the same."""
    cost = [1.0] * n_items if costs is None else costs
    enough = sum(cost) / (_TASKS_PER_WORKER * n_workers)
    batches: list[list[int]] = []
    filled = enough
    for i in sorted(range(n_items), key=lambda i: -cost[i]):
        if filled >= enough:
            batches.append([])
            filled = 0.0
        batches[-1].append(i)
        filled += cost[i]
    return batches
