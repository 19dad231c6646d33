"""How a page reads what is typed: settings and terms of texts, columns, or rows of numbers.

What a model file carries of it is taken as it stands in its sections; a kind that the page's script
does not know is left out, and the page says that it cannot read texts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from thinleaf._dtypes import INDEX, PARAM, AnyArray
from thinleaf.explain.explorer.block import Block
from thinleaf.model.file_parts import Section
from thinleaf.model.frozen import FrozenModel

_KINDS = ("tfidf", "chars", "both", "hashing")
_VERSIONS = (1, 2)
_N_TF = 256
_MOST_NAMES = 2_000_000


@dataclass
class PageInput:
    """What the script is told of a model's input.

    Attributes
    ----------
    values : dict
        For the script: ``kind`` is "texts", "words" (of label trees) or "rows".
    arrays : dict of str to ndarray
    rising : dict of str to ndarray
        Integers that mostly rise.
    names : list of str or None
        Names of all features, where terms do not say them.
    """

    values: dict[str, Any]
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    rising: dict[str, AnyArray] = field(default_factory=dict)
    names: list[str] | None = None

    def spread(self, n_features: int) -> AnyArray:
        """Return how much features vary, about: of terms, by how many texts have them."""
        out = np.ones(n_features)
        at = 0
        for number, part in enumerate(self.values.get("parts", ())):
            if part["kind"] != "hashing":
                idf = self.arrays[f"{number}.idf.levels"][self.arrays[f"{number}.idf"]]
                idf = idf.astype(float)
                out[at : at + idf.size] = idf * np.exp((1.0 - idf) / 2.0)
            at += part["features"]
        return out

    def add_to(self, block: Block) -> None:
        """Add all arrays, and tables of characters where there are texts."""
        for name, array in self.arrays.items():
            block.add(name, array)
        for name, array in self.rising.items():
            block.add_rising(name, array)
        if self.values["kind"] != "rows":
            _add_characters(block)
        if self.names is not None and len(self.names) <= _MOST_NAMES:
            block.add_strings("names", self.names)


def page_input(model: FrozenModel, feature_name: Callable[[int], str] | None) -> PageInput:
    """Return how a model's input is read in a page.

    Parameters
    ----------
    model : FrozenModel
    feature_name : callable, optional
        Names features of rows; else the model's own names, or none.
    """
    words = getattr(model, "words", None)
    if words is not None:
        return _of_words(words)
    sections = model.sections
    unknown = "the page cannot make features of such texts"
    if "text" in sections:
        found = _text_part(sections["text"], 0)
        if found is not None:
            part, arrays = found
            return PageInput({"kind": "texts", "parts": [part], "columns": None}, arrays)
    elif "columns" in sections:
        found_columns = _columns(sections["columns"])
        if found_columns is not None:
            return found_columns
        unknown = "the page cannot make features of these columns"
    elif "encoder" in sections:
        unknown = "an encoder makes rows of texts, and no page holds it"
    else:
        unknown = ""
    names = model.feature_names
    if names is None and feature_name is not None and model.n_features <= _MOST_NAMES:
        names = [feature_name(f) for f in range(model.n_features)]
    return PageInput({"kind": "rows", "why": unknown}, names=names)


def _of_words(words: Any) -> PageInput:
    """Return the input of a label tree of texts, by its attributes."""
    values = {
        "kind": "words",
        "ngrams": int(words.ngrams),
        "buckets": int(words.n_buckets),
        "mean": words.pooling == "mean",
    }
    return PageInput(values, {"term_keys": words.term_keys.astype(np.uint64)})


def _text_part(section: Section, number: int) -> tuple[dict[str, Any], dict[str, AnyArray]] | None:
    """Return settings and terms of one column of texts; None if the script does not know them."""
    meta = section.metadata
    kind = meta.get("kind")
    if kind not in _KINDS or meta.get("version") not in _VERSIONS:
        return None
    arrays: dict[str, AnyArray] = {}
    part: dict[str, Any] = {
        "kind": kind,
        "words": None if kind == "chars" else list(meta["ngram_range"]),
        "chars": list(meta["char_range"]) if kind in ("chars", "both") else None,
    }
    if kind == "hashing":
        n = int(meta["n_buckets"])
        return part | {"features": n, "n_words": n, "signed": bool(meta["signed"])}, arrays
    idf, ptr = section.arrays["idf"], section.arrays["term_ptr"]
    levels, level = np.unique(idf, return_inverse=True)
    content = section.arrays["term_bytes"]
    # strings are cut by what JavaScript counts: one for each character, two above U+FFFF
    begins = ((content & 0xC0) != 0x80).astype(np.int64) + (content >= 0xF0)
    total = np.concatenate([[0], np.cumsum(begins)])
    arrays = {
        f"{number}.terms.utf8": content,
        f"{number}.terms.sizes": np.diff(total[ptr]).astype(INDEX),
        f"{number}.idf.levels": levels.astype(PARAM),
        f"{number}.idf": level.astype(INDEX),
    }
    n_words = int(meta["n_words"]) if "n_words" in meta else int(idf.size)
    return part | {"features": int(idf.size), "n_words": n_words, "signed": False}, arrays


def _columns(section: Section) -> PageInput | None:
    parts: list[dict[str, Any]] = []
    arrays: dict[str, AnyArray] = {}
    names: list[str] = []
    for number, column in enumerate(section.metadata["texts"]):
        if column["kind"] != "text":
            return None
        prefix = f"{number}."
        own: Mapping[str, AnyArray] = {
            key.removeprefix(prefix): array
            for key, array in section.arrays.items()
            if key.startswith(prefix)
        }
        found = _text_part(Section(own, column["metadata"]), number)
        if found is None:
            return None
        parts.append(found[0])
        arrays |= found[1]
        names.append(str(column["name"]))
    numeric = [str(name) for name in section.metadata["numeric"]]
    arrays |= {"mean": section.arrays["mean"], "scale": section.arrays["scale"]}
    values = {"kind": "texts", "parts": parts, "columns": names, "numeric": numeric}
    return PageInput(values, arrays)


def feature_namer(
    model: FrozenModel, made: PageInput, given: Callable[[int], str] | None
) -> Callable[[int], str] | None:
    """Return what names features in Python; None where they have no names."""
    if made.values["kind"] == "words":
        return None
    if made.names is not None:
        return made.names.__getitem__
    own = getattr(model, "input", None)
    if own is not None:
        name: Callable[[int], str] = own.feature_name
        return name
    return given or str


# -- characters ------------------------------------------------------------------------------------


def _add_characters(block: Block) -> None:
    for name, array in _characters().items():
        block.add_rising(name, array)
    tf = np.ones(_N_TF, dtype=PARAM)
    tf[1:] += np.log(np.arange(1, _N_TF, dtype=PARAM))
    block.add("tf", tf)


@cache
def _characters() -> dict[str, AnyArray]:
    r"""Return what this Python holds to be words, white space and lower case, for the script.

    Runs of ``\w`` and ``\s`` as begin and end, one after the other; and the characters that have
    a lower case of one character, with it. The one that has more, U+0130, the script knows.
    """
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    runs = {
        name: np.array([edge for run in re.finditer(pattern, every) for edge in run.span()])
        for name, pattern in (("word_runs", r"\w+"), ("space_runs", r"\s+"))
    }
    pairs = [
        (code, ord(lower))
        for code, char in enumerate(every)
        if (lower := char.lower()) != char and len(lower) == 1
    ]
    upper, lower_case = np.array(pairs).T
    return runs | {"upper": upper, "lower": lower_case}
