r"""The tables of Unicode in ``thinleaf.h``: lower case, ``\w`` and white space, as Python has them.

``python -m thinleaf.native._tables`` writes them anew, from the Python that runs it. Readers of one
version of Unicode agree on every character that this version knows.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

HEADER = Path(__file__).with_name("thinleaf.h")
BEGIN, END = "/* -- tables of Unicode", "/* -- end of the tables */"
_N_ASCII = 128
_WIDTH = 96


def tables() -> str:
    """Return the part of the header between its marks."""
    every = range(_N_ASCII, sys.maxunicode + 1)
    word, space = re.compile(r"\w"), re.compile(r"\s")
    lines = [f"{BEGIN} {unicodedata.unidata_version}, made by native/_tables.py */"]
    lines += _bounds("tl_word", every, lambda c: word.match(c) is not None)
    lines += _bounds("tl_space", every, lambda c: space.match(c) is not None)
    lines += _bounds("tl_cased", every, _is_cased)
    lines += _bounds("tl_ignorable", every, _is_ignorable)
    runs = list(_lower_runs(every))
    lines += _planes("tl_lower", [(first, last) for first, last, _, _ in runs])
    lines.append(
        "/* what is added, doubled, plus one if only every other character of a run changes */"
    )
    lines += _array(
        "static const int32_t tl_lower_add[]", [2 * d + step - 1 for *_, step, d in runs]
    )
    return "\n".join([*lines, END])


def _is_cased(c: str) -> bool:
    """Return whether a capital sigma after it, and at the end of a word, is a final one."""
    return (c + "\u03a3").lower()[-1] == "\u03c2"


def _is_ignorable(c: str) -> bool:
    """Return whether it is as if it were not there between a letter and a capital sigma."""
    return ("A" + c + "\u03a3").lower()[-1] == "\u03c2" and not _is_cased(c)


def _bounds(name: str, codes: range, holds: Callable[[str], bool]) -> list[str]:
    """Return the runs of characters of a kind: the first and the last of each."""
    found = []
    for (inside, _), run in groupby(codes, lambda code: (holds(chr(code)), code >> 16)):
        if inside:
            own = list(run)
            found.append((own[0], own[-1]))
    return _planes(name, found)


def _planes(name: str, runs: list[tuple[int, int]]) -> list[str]:
    """Return runs by the lower half of their code points, and where those of each plane begin."""
    begins = [sum(first >> 16 < plane for first, _ in runs) for plane in range(18)]
    pairs = [f"{{{first & 0xFFFF}, {last & 0xFFFF}}}" for first, last in runs]
    return [
        *_array(f"static const uint16_t {name}[][2]", pairs),
        *_array(f"static const uint16_t {name}_planes[18]", begins),
    ]


def _lower_runs(codes: range) -> Iterator[tuple[int, int, int, int]]:
    """Yield runs of characters, one or two apart, that have lower case at the same distance."""
    changed = {code: chr(code).lower() for code in codes if code not in (0x130, 0x3A3)}
    delta = {code: ord(low) - code for code, low in changed.items() if low != chr(code)}
    todo = sorted(delta)
    while todo:
        first = last = todo[0]
        step = 1 if delta.get(first + 1) == delta[first] else 2
        while delta.get(last + step) == delta[first]:
            if step == 2 and last + 1 in delta:
                break
            last += step
        yield first, last, step, delta[first]
        todo = [code for code in todo if code > last]


def _array(declaration: str, items: Sequence[object]) -> list[str]:
    lines = [f"{declaration} = {{"]
    line = " "
    for item in map(str, items):
        if len(line) + len(item) + 2 > _WIDTH:
            lines.append(line)
            line = " "
        line += f" {item},"
    return [*lines, line, "};"]


def written(header: str) -> str:
    """Return a header with the tables of this Python."""
    before, _, rest = header.partition(BEGIN)
    return before + tables() + rest.partition(END)[2]


if __name__ == "__main__":
    HEADER.write_text(written(HEADER.read_text("utf-8")), encoding="utf-8")
