"""From raw texts to classes in one call: the reader's row goes straight to a packed tree."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import AnyArray, IndexArray, OffsetArray
from thinleaf.kernels._jit import inlined, strict_kernel, strict_part
from thinleaf.model.kernels.addresses import fetch, int64_at, uint64_at
from thinleaf.model.kernels.mixture import best_of, mixture_of, slot_of
from thinleaf.model.kernels.packed import (
    IS_MARKED,
    IS_SPARSE,
    N_TOP,
    NEAR,
    OK,
    ROUTER_IDX,
    ROUTER_PTR,
    ROUTER_VAL,
    dense_of,
    keep_alive,
    row_from,
)
from thinleaf.model.kernels.prediction import class_of_pairs
from thinleaf.text.kernels.known import known_in
from thinleaf.text.kernels.memory import address_of
from thinleaf.text.kernels.rows import (
    entries_of_text,
    kept,
    most_grams,
    scratch_in,
    scratch_size,
    weigh,
)
from thinleaf.text.kernels.sureness import judged, signs_of


@strict_part
def _row_for(reader, tree, text_at, size, scratch, idx, val):
    """Fill in the row of a text; what routers near the root say of it is brought near meanwhile."""
    n = entries_of_text(reader, text_at, size, scratch)
    entries = uint64_at(scratch.found)
    ahead = tree[IS_SPARSE] == 1 and tree[N_TOP] > 0
    offsets, step = (tree[NEAR], 24) if tree[IS_MARKED] == 1 else (tree[ROUTER_PTR], 8)
    for i in range(n if ahead else 0):
        fetch(offsets + step * np.int64(entries[i] >> np.uint64(32)))
    n = weigh(reader, scratch.found, n, idx, val)
    for t in range(n if ahead else 0):
        at = int64_at(offsets + step * np.int64(idx[t]))[0]
        fetch(tree[ROUTER_VAL] + 4 * at)
        if tree[IS_MARKED] == 0:
            fetch(tree[ROUTER_IDX] + 4 * at)
    return n


@inlined
def _pairs(reader, tree, text):
    """Return the row of one text, a ``bytes`` object, as two arrays."""
    size = len(text)
    memory = np.empty(scratch_size(reader, size), dtype=np.int64)
    words, chars = most_grams(reader, size)
    idx = np.empty(words + chars, dtype=np.int32)
    val = np.empty(words + chars, dtype=np.float32)
    scratch = scratch_in(memory.ctypes.data, reader, size)
    n = kept(_row_for(reader, tree, address_of(text), size, scratch, idx, val), memory)
    return idx[:n], val[:n]


@strict_kernel
def class_of_text(reader: OffsetArray, tree: OffsetArray, text: bytes) -> int:
    """Return the class of one text at the end of one path, or an error."""
    idx, val = _pairs(reader, tree, text)
    return class_of_pairs(tree, idx, val, None)


@strict_kernel
def mixed_class_of_text(reader: OffsetArray, tree: OffsetArray, text: bytes) -> int:
    """Do the same with several paths."""
    idx, val = _pairs(reader, tree, text)
    return class_of_pairs(tree, idx, val, True)


@strict_kernel
def classes_of_texts(
    reader: OffsetArray,
    tree: OffsetArray,
    content: AnyArray,
    text_ptr: OffsetArray,
    begin: int,
    end: int,
    several: bool | None,
    out: IndexArray,
) -> int:
    """Fill in the classes of some texts; return OK or an error."""
    longest = 0
    for text in range(begin, end):
        longest = max(longest, text_ptr[text + 1] - text_ptr[text])
    memory = np.empty(scratch_size(reader, longest), dtype=np.int64)
    words, chars = most_grams(reader, longest)
    idx = np.empty(words + chars, dtype=np.int32)
    val = np.empty(words + chars, dtype=np.float32)
    for text in range(begin, end):
        size = text_ptr[text + 1] - text_ptr[text]
        scratch = scratch_in(memory.ctypes.data, reader, size)
        at = content.ctypes.data + text_ptr[text]
        n = kept(_row_for(reader, tree, at, size, scratch, idx, val), memory)
        class_id = class_of_pairs(tree, idx[:n], val[:n], several)
        if class_id < 0:
            return class_id
        out[text] = class_id
    return OK


# -- how sure --------------------------------------------------------------------------------------


@strict_part
def _probabilities(tree, idx, val):
    """Return the probability of the best class, that within its leaves, and OK or an error."""
    x = dense_of(tree, idx, val)
    top = np.empty(tree[N_TOP], dtype=np.float32)
    row = row_from(tree, x, idx, val, top)
    best, p = np.empty(1, dtype=np.int32), np.zeros(1, dtype=np.float64)
    mixture, status = mixture_of(tree, row, True)
    alone = 0.0
    if status == OK:
        best_of(tree, mixture, best, p)
        inside, _ = mixture_of(tree, row, False)
        at = inside.lookup[slot_of(inside.lookup, inside.ids, best[0])]
        alone = inside.p[at - 1] if at > 0 else 0.0
    return p[0], alone, keep_alive(status, x, idx, val, top)


@strict_kernel
def sure_class_of_text(
    reader: OffsetArray,
    known: OffsetArray,
    tree: OffsetArray,
    rejection: OffsetArray,
    text: bytes,
    several: bool | None,
) -> tuple[int, float, float, int]:
    """Return the class of one text or an error, two of its figures, and its known terms.

    The figures are how often labels with such a score were right, and those with a higher one.
    """
    idx, val = _pairs(reader, tree, text)
    class_id = class_of_pairs(tree, idx, val, several)
    if class_id < 0:
        return class_id, 0.0, 0.0, 0
    top, alone, status = _probabilities(tree, idx, val)
    if status != OK:
        return int(status), 0.0, 0.0, 0
    n_known, n_terms = known_in(known, text)
    a, b, c, d, e = signs_of(top, alone, float(n_known), float(n_terms))
    probability, precision = judged(rejection, a, b, c, d, e)
    return class_id, probability, precision, n_known
