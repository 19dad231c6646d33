"""Growing hash tables of small integers, one for each owner, all in one arena.

Owner and key are, for example, a feature and a class, or a node and a class. A table has 2^b slots
and is found from its owner in one step, so that all keys of one owner are near each other in
memory. A table that gets too full moves to one twice as large; its old slots are kept for another
table of their size. Memory is linear in the pairs that occur.

Kernels cannot enlarge arrays. So they ask for room before an example changes anything
(:func:`room_for`), stop where there is too little, and the caller enlarges the arena
(:func:`enlarged`) and goes on. No operation on weights belongs here.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from thinleaf._dtypes import INDEX, OFFSET, AnyArray, IndexArray, OffsetArray
from thinleaf.arrays.ragged import offsets
from thinleaf.kernels._jit import bare_kernel, bare_part

EMPTY: Final = -1
"""Key of a free slot, and start of an owner without a table."""

START: Final = 0
LOG_SIZE: Final = 1
COUNT: Final = 2
USED: Final = 32
"""Place in ``Tables.heads``, after one for each size of a table."""

_SMALLEST = 2


class Tables(NamedTuple):
    """Tables of ``n_owners`` owners; a slot has a key and ``width`` values.

    Keys and values are views of one array of slots: who finds a key has its values in the cache.
    """

    owners: OffsetArray
    """Columns ``START``, ``LOG_SIZE`` and ``COUNT``, of shape (n_owners, 3)."""
    keys: IndexArray
    """Of shape (n_slots,)."""
    values: AnyArray
    """Of shape (n_slots, width); zero where a key is new."""
    heads: OffsetArray
    """First free region of each size, in units of four slots, and last the slots used so far.

    The first key of a free region is where the next one begins, in the same units.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Let copies have both in one array, too: views apart would be compiled for once more."""
        return _joined, tuple(self)


def new_tables(n_owners: int, width: int, dtype: Any) -> Tables:
    """Return tables without keys."""
    heads = np.full(USED + 1, EMPTY, dtype=OFFSET)
    heads[USED] = 0
    return Tables(_new_owners(n_owners), *_new_slots(4, width, dtype), heads)


def _new_slots(n_slots: int, width: int, dtype: Any) -> tuple[IndexArray, AnyArray]:
    """Return the keys and the values of free slots."""
    slot = np.dtype([("key", INDEX), ("values", dtype, (width,))], align=True)
    slots = np.zeros(n_slots, dtype=slot)
    slots["key"] = EMPTY
    return slots["key"], slots["values"]


def _joined(owners: OffsetArray, keys: IndexArray, values: AnyArray, heads: OffsetArray) -> Tables:
    slots = _new_slots(keys.size, values.shape[1], values.dtype)
    slots[0][:], slots[1][:] = keys, values
    return Tables(owners, *slots, heads)


def _new_owners(n_owners: int) -> OffsetArray:
    owners = np.zeros((n_owners, 3), dtype=OFFSET)
    owners[:, START] = EMPTY
    return owners


def enlarged(tables: Tables, n_owners: int, n_slots: int) -> Tables:
    """Return tables for at least ``n_owners`` owners, with at least ``n_slots`` slots."""
    more = max(n_owners, 2 * tables.owners.shape[0]) - tables.owners.shape[0]
    if n_owners > tables.owners.shape[0]:
        tables = tables._replace(owners=np.concatenate([tables.owners, _new_owners(more)]))
    if n_slots > tables.keys.size:
        n_held, values = tables.keys.size, tables.values
        n_slots = max(n_slots, 3 * n_held // 2)
        new_keys, new_values = _new_slots(n_slots, values.shape[1], values.dtype)
        new_keys[:n_held], new_values[:n_held] = tables.keys, values
        tables = tables._replace(keys=new_keys, values=new_values)
    return tables


def padded(array: Any, length: int, fill: float) -> Any:
    """Return a copy with ``length`` rows; new ones hold ``fill``."""
    out = np.empty((length, *array.shape[1:]), dtype=array.dtype)
    out[: array.shape[0]] = array
    out[array.shape[0] :] = fill
    return out


def first_owners(tables: Tables, n_owners: int) -> Tables:
    """Return a view of the tables of the first owners."""
    return tables._replace(owners=tables.owners[:n_owners])


# -- contents, in an order that does not depend on history -----------------------------------------


class Contents(NamedTuple):
    """The keys of each owner, ascending, and their values: what is stored of tables."""

    ptr: OffsetArray
    """Where the keys of an owner begin and end, of shape (n_owners + 1,)."""
    keys: IndexArray
    values: AnyArray


def contents(tables: Tables, n_owners: int) -> Contents:
    """Return what the first ``n_owners`` owners hold."""
    counts = tables.owners[:n_owners, COUNT]
    ptr = offsets(counts)
    slots = np.empty(ptr[-1], dtype=OFFSET)
    _collect(tables, ptr, slots)
    owners = np.repeat(np.arange(n_owners), counts)
    slots = slots[np.lexsort((tables.keys[slots], owners))]
    return Contents(ptr, tables.keys[slots], tables.values[slots])


def tables_of(held: Contents) -> Tables:
    """Return tables with some contents."""
    sizes = np.diff(held.ptr)
    tables = new_tables(sizes.size, held.values.shape[1], held.values.dtype)
    tables = enlarged(tables, 0, int(sum(1 << log_size_for(size) for size in sizes[sizes > 0])))
    _fill(tables, held)
    return tables


@bare_kernel
def _collect(tables: Tables, ptr: OffsetArray, slots: OffsetArray) -> None:
    for owner in range(ptr.size - 1):
        at = ptr[owner]
        start = tables.owners[owner, START]
        if start == EMPTY:
            continue
        for slot in range(start, start + (1 << tables.owners[owner, LOG_SIZE])):
            if tables.keys[slot] != EMPTY:
                slots[at] = slot
                at += 1


@bare_kernel
def _fill(tables: Tables, held: Contents) -> None:
    for owner in range(held.ptr.size - 1):
        first, end = held.ptr[owner], held.ptr[owner + 1]
        if first < end:
            grow(tables, owner, end - first)
        for i in range(first, end):
            slot = insert(tables, owner, held.keys[i])
            for v in range(held.values.shape[1]):
                tables.values[slot, v] = held.values[i, v]


# -- operations ------------------------------------------------------------------------------------


@bare_part
def home(key: int, log_size: int) -> int:
    """Return the slot, within its table, where the search for a key begins."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return int(np.int64(mixed >> np.uint64(64 - log_size)))


@bare_kernel
def find(tables: Tables, owner: int, key: int) -> int:
    """Return the slot of a key, or ``EMPTY``."""
    start = tables.owners[owner, START]
    if start == EMPTY:
        return EMPTY
    log_size = tables.owners[owner, LOG_SIZE]
    last = (1 << log_size) - 1
    at = home(key, log_size)
    while True:
        found = tables.keys[start + at]
        if found == key:
            return int(start + at)
        if found == EMPTY:
            return EMPTY
        at = (at + 1) & last


@bare_kernel
def log_size_for(count: int) -> int:
    """Return the size of a table that holds so many keys with half of its slots free."""
    log_size = _SMALLEST
    while 2 * count > (1 << log_size):
        log_size += 1
    return log_size


@bare_kernel
def room_for(tables: Tables, owner: int, n_keys: int) -> int:
    """Return how many unused slots the arena needs so that ``n_keys`` keys can be added."""
    count = tables.owners[owner, COUNT] + n_keys
    start, log_size = tables.owners[owner, START], tables.owners[owner, LOG_SIZE]
    if start != EMPTY and 2 * count <= (1 << log_size):
        return 0
    return 2 << log_size_for(count)


@bare_part
def grow(tables: Tables, owner: int, n_keys: int) -> bool:
    """Make a table large enough for ``n_keys`` more keys; return whether its keys moved."""
    count = tables.owners[owner, COUNT] + n_keys
    old = tables.owners[owner, START]
    old_log = tables.owners[owner, LOG_SIZE]
    if old != EMPTY and 2 * count <= (1 << old_log):
        return False
    log_size = log_size_for(count)
    start = _allocate(tables, log_size)
    last = (1 << log_size) - 1
    for at in range(start, start + last + 1):
        tables.keys[at] = EMPTY
    tables.owners[owner, START] = start
    tables.owners[owner, LOG_SIZE] = log_size
    if old == EMPTY:
        return False
    for at in range(old, old + (1 << old_log)):
        key = tables.keys[at]
        if key != EMPTY:
            to = home(key, log_size)
            while tables.keys[start + to] != EMPTY:
                to = (to + 1) & last
            tables.keys[start + to] = key
            for v in range(tables.values.shape[1]):
                tables.values[start + to, v] = tables.values[at, v]
    _release(tables, old, old_log)
    return True


@bare_part
def _release(tables: Tables, start: int, log_size: int) -> None:
    """Keep a region for the next table of its size."""
    tables.keys[start] = tables.heads[log_size]
    tables.heads[log_size] = start // 4


@bare_part
def _allocate(tables: Tables, log_size: int) -> int:
    start = 4 * tables.heads[log_size]
    if start >= 0:
        tables.heads[log_size] = tables.keys[start]
        return int(start)
    start = tables.heads[USED]
    tables.heads[USED] = start + (1 << log_size)
    return int(start)


@bare_part
def insert(tables: Tables, owner: int, key: int) -> int:
    """Return the slot of a key that is not there yet; its values are zero.

    The table must have a slot for it: see :func:`grow`.
    """
    start = tables.owners[owner, START]
    log_size = tables.owners[owner, LOG_SIZE]
    last = (1 << log_size) - 1
    at = home(key, log_size)
    while tables.keys[start + at] != EMPTY:
        at = (at + 1) & last
    tables.keys[start + at] = key
    for v in range(tables.values.shape[1]):
        tables.values[start + at, v] = 0
    tables.owners[owner, COUNT] += 1
    return int(start + at)


@bare_kernel
def find_or_insert(tables: Tables, owner: int, key: int) -> int:
    """Return the slot of a key, new or not."""
    at = find(tables, owner, key)
    if at == EMPTY:
        grow(tables, owner, 1)
        at = insert(tables, owner, key)
    return at


@bare_kernel
def clear(tables: Tables, owner: int) -> None:
    """Take all keys from an owner; its slots are kept for another one."""
    start, log_size = tables.owners[owner, START], tables.owners[owner, LOG_SIZE]
    if start != EMPTY:
        _release(tables, start, log_size)
    tables.owners[owner, START] = EMPTY
    tables.owners[owner, LOG_SIZE] = 0
    tables.owners[owner, COUNT] = 0
