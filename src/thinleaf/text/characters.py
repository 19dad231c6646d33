r"""What each character is, as this Python has it: part of a word (``\w``), white space, or neither.

Texts of ASCII alone need 128 entries. The table of all characters is made when it is first needed,
in some 50 ms, and takes a megabyte.
"""

from __future__ import annotations

import re
import sys
from functools import cache

import numpy as np

from thinleaf._dtypes import AnyArray
from thinleaf.text.kernels.tokens import SPACE, WORD


@cache
def character_kinds(n_characters: int = sys.maxunicode + 1) -> AnyArray:
    r"""Return the kind of each character, by code point; surrogates are neither.

    Examples
    --------
    >>> from thinleaf.text.characters import character_kinds
    >>> character_kinds(128)[[ord(c) for c in "a_3-\t"]]
    array([1, 1, 1, 0, 2], dtype=uint8)
    """
    kinds = np.zeros(n_characters, dtype=np.uint8)
    every = "".join(map(chr, range(n_characters)))
    for pattern, kind in ((r"\w+", WORD), (r"\s+", SPACE)):
        for run in re.finditer(pattern, every):
            kinds[run.start() : run.end()] = kind
    kinds.flags.writeable = False
    return kinds
