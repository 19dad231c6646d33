"""A model file as C source: what embeds it in a program."""

from __future__ import annotations

import re

_ROW = 24


def c_array(content: bytes, name: str = "thinleaf_model") -> str:
    """Return a C header with a model file as an array of bytes.

    Parameters
    ----------
    content : bytes
        The file.
    name : str
        Of the array.
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"{name!r} cannot be the name of an array in C")
    rows = (content[at : at + _ROW] for at in range(0, len(content), _ROW))
    lines = [",".join(map(str, row)) + "," for row in rows]
    return "\n".join([
        f"/* A thinleaf model of {len(content):,} bytes: open it with tl_open of thinleaf.h. */",
        "#ifdef __GNUC__",
        "__attribute__((aligned(8)))",
        "#endif",
        f"static const unsigned char {name}[{len(content)}] = {{",
        *lines,
        "};",
        "",
    ])  # fmt: skip
