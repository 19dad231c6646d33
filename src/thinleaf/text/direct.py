"""From raw texts to classes without a matrix in between, one text at a time or many."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from thinleaf._dtypes import INDEX, IndexArray
from thinleaf.model.packed_predictor import PackedPredictor
from thinleaf.text.encoding import all_encoded, encoded
from thinleaf.text.kernels.classes import (
    class_of_text,
    classes_of_texts,
    mixed_class_of_text,
    sure_class_of_text,
)

if TYPE_CHECKING:
    from thinleaf.text.features import TextFeatures
    from thinleaf.text.rejection import Rejection

_MIN_CHUNK = 64
_MAX_CHUNK = 1 << 14


class TextToClass:
    """What :meth:`TextFeatures.row_of` and a packed tree answer, in one compiled call.

    Parameters
    ----------
    features : TextFeatures
        Fitted; it is not to be fitted again.
    predictor : PackedPredictor
        Trained on rows of these features.

    Raises
    ------
    ValueError
        If the tree has another number of features.
    """

    def __init__(self, features: TextFeatures, predictor: PackedPredictor) -> None:
        if features.n_features != predictor.n_features:
            raise ValueError(
                f"the texts have {features.n_features} features, but the model expects "
                f"{predictor.n_features}"
            )
        self._reader, self._known = features.reader, features.reader_of_known_terms()
        self._predictor = predictor
        self._tree = predictor.table
        self._kernel = mixed_class_of_text if predictor.several_paths else class_of_text

    def __call__(self, text: str) -> int:
        """Return the class of one text.

        Raises
        ------
        ValueError
            If it is no string.
        """
        content = encoded(text)
        class_id: int = self._kernel(self._reader.table_for(content), self._tree, content)
        if class_id < 0:
            self._predictor.fail(class_id, content)
        return class_id

    def many(self, texts: Sequence[str], n_jobs: int = 1) -> IndexArray:
        """Return the class of each text; -1 threads are all cores."""
        joined, text_ptr = all_encoded(texts)
        content, reader = np.frombuffer(joined, dtype=np.uint8), self._reader.table_for(joined)
        out = np.empty(len(texts), dtype=INDEX)
        n_threads = (os.cpu_count() or 1) if n_jobs < 0 else max(n_jobs, 1)
        n_threads = min(n_threads, max(len(texts) // _MIN_CHUNK, 1))
        n_chunks = max(-(-len(texts) // _MAX_CHUNK), 4 * n_threads if n_threads > 1 else 1)
        cuts = np.linspace(0, len(texts), n_chunks + 1).astype(int).tolist()
        several = True if self._predictor.several_paths else None

        def classify(begin: int, end: int) -> int:
            return classes_of_texts(reader, self._tree, content, text_ptr, begin, end, several, out)

        if n_threads == 1:
            status = min(map(classify, cuts[:-1], cuts[1:]))
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                status = min(pool.map(classify, cuts[:-1], cuts[1:]))
        if status < 0:
            self._predictor.fail(status, content)
        return out

    @property
    def knows_terms(self) -> bool:
        """Whether :meth:`sure` can tell: hashes do not say which terms are known."""
        return self._known is not None

    def sure(self, text: str, rejection: Rejection, precision: float) -> int:
        """Return the class of one text; -1 if it is to be rejected for a wanted precision."""
        assert self._known is not None
        content = encoded(text)
        several = True if self._predictor.several_paths else None
        class_id, probability, of_all_above, n_known = sure_class_of_text(
            self._reader.table_for(content), self._known.table_for(content), self._tree,
            rejection.table, content, several,
        )  # fmt: skip
        if class_id < 0:
            self._predictor.fail(class_id, content)
        answered = rejection.answers_one(probability, of_all_above, n_known, precision)
        return int(class_id) if answered else -1
