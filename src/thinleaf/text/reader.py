"""From strings to rows: settings and terms as kernels take them, and who calls these.

A :class:`Reader` is what :class:`~thinleaf.text.features.TextFeatures` computes with. Lower case is
Python's; the rest is compiled.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np

from thinleaf._dtypes import INDEX, OFFSET, PARAM, AnyArray, IndexArray, OffsetArray, ParamArray
from thinleaf.arrays.ragged import offsets
from thinleaf.text.characters import character_kinds
from thinleaf.text.encoding import all_encoded, encoded
from thinleaf.text.kernels import rows as kernels
from thinleaf.text.kernels.rows import ARRAYS, KINDS, N_KINDS, NUMBERS
from thinleaf.text.vocabulary import Vocabulary

_N_ASCII = 128
_N_TF = 256
_MIN_CHUNK = 64
_MAX_CHUNK = 1 << 14
_NOTHING = np.zeros(1, dtype=np.int64)

_TF = np.ones(_N_TF, dtype=PARAM)
_TF[1:] += np.log(np.arange(1, _N_TF, dtype=PARAM))
"""The weight of so many occurrences, in the steps of scikit-learn: 1 + log(count)."""


class Reader:
    """Reads texts into rows.

    Parameters
    ----------
    words, chars : tuple of int, optional
        The least and the most words, or characters within a word, of an n-gram.
    vocabulary : Vocabulary, optional
        The terms. Without them nothing can be read, unless n-grams are hashed.
    n_buckets : int, optional
        Of hashed words: a power of two.
    signed : bool
        Whether half of the hashed words count negative.
    """

    def __init__(
        self,
        words: tuple[int, int] | None,
        chars: tuple[int, int] | None,
        vocabulary: Vocabulary | None = None,
        *,
        n_buckets: int | None = None,
        signed: bool = True,
    ) -> None:
        slots = _NOTHING if vocabulary is None else vocabulary.slots
        n_features = n_buckets or (1 if vocabulary is None else vocabulary.n_terms)
        n_word_terms = n_features if vocabulary is None else vocabulary.n_words
        word_low, word_high = words or (1, 0)
        char_low, char_high = chars or (1, 0)
        numbers = {
            "is_hashing": int(n_buckets is not None),
            "word_low": word_low,
            "word_high": word_high,
            "char_low": char_low,
            "char_high": char_high,
            "n_kinds": _N_ASCII,
            "n_word_terms": n_word_terms,
            "slot_bits": (slots.size // 2).bit_length() - 1,
            "id_bits": max(1, (n_features - 1).bit_length()),
            "n_buckets": n_buckets or 1,
            "signed": int(signed),
            "n_tf": _N_TF,
        }
        self._arrays = {
            "kinds": character_kinds(_N_ASCII),
            "slots": slots,
            "term_ptr": _NOTHING if vocabulary is None else vocabulary.term_ptr,
            "term_bytes": _NOTHING if vocabulary is None else vocabulary.term_bytes,
            "tf": _TF,
        }
        addresses = [_address(self._arrays[name]) for name in ARRAYS]
        self._table: OffsetArray = np.array(
            [numbers[name] for name in NUMBERS] + addresses, dtype=OFFSET
        )

    def table_for(self, content: bytes) -> OffsetArray:
        """Return the table that kernels take, with the characters that an encoded text may have.

        It may be used as long as the reader is there.
        """
        return self._table if content.isascii() else self._table_of_all_characters

    @cached_property
    def _table_of_all_characters(self) -> OffsetArray:
        table = self._table.copy()
        kinds = character_kinds()  # kept by its cache
        table[KINDS], table[N_KINDS] = _address(kinds), kinds.size
        return table

    def row(self, text: str) -> tuple[IndexArray, ParamArray]:
        """Return indices and values of one text."""
        content = encoded(text)
        return kernels.row(self.table_for(content), content)

    def rows(
        self, texts: Sequence[str], n_jobs: int = 1
    ) -> tuple[OffsetArray, IndexArray, ParamArray]:
        """Return the rows of texts: where each begins and ends, indices, values."""
        joined, text_ptr = all_encoded(texts)
        content, table = np.frombuffer(joined, dtype=np.uint8), self.table_for(joined)
        n_texts = len(texts)
        sizes = np.empty(n_texts, dtype=INDEX)
        n_threads = (os.cpu_count() or 1) if n_jobs < 0 else max(n_jobs, 1)
        n_threads = min(n_threads, max(n_texts // _MIN_CHUNK, 1))
        n_chunks = max(-(-n_texts // _MAX_CHUNK), 4 * n_threads if n_threads > 1 else 1)
        cuts = np.linspace(0, n_texts, n_chunks + 1).astype(int).tolist()

        def read(begin: int, end: int) -> tuple[IndexArray, ParamArray]:
            return kernels.rows(table, content, text_ptr, begin, end, sizes)

        if n_threads == 1:
            pieces = list(map(read, cuts[:-1], cuts[1:]))
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                pieces = list(pool.map(read, cuts[:-1], cuts[1:]))
        indices, values = zip(*pieces, strict=True)
        return offsets(sizes), np.concatenate(indices), np.concatenate(values)


def _address(array: AnyArray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
