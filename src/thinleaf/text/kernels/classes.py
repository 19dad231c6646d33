"""From a raw text to its class in one call: the reader's row goes straight to a packed tree."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return"

from __future__ import annotations

from thinleaf._dtypes import OffsetArray
from thinleaf.kernels._jit import strict_kernel
from thinleaf.model.kernels.prediction import class_of_pairs
from thinleaf.text.kernels.rows import pairs_of_text


@strict_kernel
def class_of_text(reader: OffsetArray, tree: OffsetArray, text: bytes) -> int:
    """Return the class of one text at the end of one path, or an error."""
    idx, val = pairs_of_text(reader, text)
    return class_of_pairs(tree, idx, val, None)


@strict_kernel
def mixed_class_of_text(reader: OffsetArray, tree: OffsetArray, text: bytes) -> int:
    """Do the same with several paths."""
    idx, val = pairs_of_text(reader, text)
    return class_of_pairs(tree, idx, val, True)
