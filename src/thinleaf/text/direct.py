"""From a raw text to a class without an array in between: for one text at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinleaf.model.packed_predictor import PackedPredictor
from thinleaf.text.encoding import encoded
from thinleaf.text.kernels.classes import class_of_text, mixed_class_of_text

if TYPE_CHECKING:
    from thinleaf.text.features import TextFeatures


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
        self._reader = features.reader
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
