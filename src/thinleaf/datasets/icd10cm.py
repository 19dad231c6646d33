"""ICD-10-CM diagnosis texts and their 3-character categories: the demo's data.

The texts come with the package ``simple-icd-10-cm`` (the tabular list of CMS and NCHS, which is in
the public domain), so nothing is downloaded. Features are made by whoever trains on them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

_MIN_TEXTS = 3
_TEST_SHARE = 0.15
_SALT = "icd"
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class TextSplit:
    """Labelled texts in a fixed training and test part.

    Attributes
    ----------
    texts_train, texts_test : list of str
    y_train, y_test : list of str
        The category of each text, such as ``"S52"``.
    titles : dict
        The title of each category that occurs.
    """

    texts_train: list[str]
    y_train: list[str]
    texts_test: list[str]
    y_test: list[str]
    titles: Mapping[str, str]


def load_icd10cm() -> TextSplit:
    """Read diagnosis texts, each labelled with its 3-character category.

    Texts are the descriptions, inclusion terms and "includes" notes of all codes but those made by
    a seventh character; a category needs three of them. About 15 % of the texts are for testing,
    chosen by a hash of their words: the split is always the same, and two texts that differ only in
    the order of words are in the same part.

    Returns
    -------
    TextSplit
        With version 1.5.0 of the package: 50,503 texts to train and 8,864 to test on, in 1,730
        categories.

    Raises
    ------
    ModuleNotFoundError
        If ``simple-icd-10-cm`` is not installed.

    Examples
    --------
    >>> from thinleaf.datasets.icd10cm import load_icd10cm
    >>> data = load_icd10cm()
    >>> data.titles["S52"]
    'Fracture of forearm'
    """
    icd = _import_icd()
    pairs = _frequent(_labelled_texts(icd))
    train = [pair for pair in pairs if not _is_test(pair[1])]
    test = [pair for pair in pairs if _is_test(pair[1])]
    return TextSplit(
        [text for _, text in train],
        [category for category, _ in train],
        [text for _, text in test],
        [category for category, _ in test],
        {category: _clean(icd.get_description(category)) for category, _ in pairs},
    )


def _import_icd() -> Any:
    try:
        return import_module("simple_icd_10_cm")
    except ModuleNotFoundError as error:
        if error.name != "simple_icd_10_cm":
            raise
        raise ModuleNotFoundError(
            "ICD-10-CM needs the package simple-icd-10-cm: pip install 'thinleaf[demo]'",
            name=error.name,
        ) from error


def _labelled_texts(icd: Any) -> list[tuple[str, str]]:
    """Return each different (category, text) once, in the order of the codes."""
    pairs: dict[tuple[str, str], None] = {}
    for code in icd.get_all_codes():
        if icd.is_category(code) or icd.is_subcategory(code, False):
            texts = [
                icd.get_description(code),
                *icd.get_inclusion_term(code),
                *icd.get_includes(code),
            ]
            pairs.update(((code[:3], _clean(text)), None) for text in texts)
    return list(pairs)


def _frequent(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    pairs = list(pairs)
    counts = Counter(category for category, _ in pairs)
    return [pair for pair in pairs if counts[pair[0]] >= _MIN_TEXTS]


def _clean(text: str) -> str:
    return " ".join(text.split())


def _is_test(text: str) -> bool:
    words = " ".join(sorted(set(_WORD.findall(text.lower()))))
    digest = hashlib.md5((_SALT + words).encode(), usedforsecurity=False).hexdigest()
    return int(digest, 16) < _TEST_SHARE * 16**32
