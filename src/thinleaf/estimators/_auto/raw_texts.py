"""A label tree on raw texts, beside the trees of the rows that are made of them.

It makes terms of texts itself. What it is trained on and judged by are the texts of the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils import check_array

from thinleaf._dtypes import PARAM, AnyArray
from thinleaf.arrays.checks import class_ids
from thinleaf.arrays.rows import as_rows
from thinleaf.estimators.label_tree import LabelTreeClassifier
from thinleaf.kernels.hashing import hash_rows
from thinleaf.labeltree.frozen import FrozenLabelTree
from thinleaf.model.frozen import FrozenTree
from thinleaf.model.variant import Variant
from thinleaf.softmaxtree.tao import TrainingData

LABEL_TREE = "label tree"
Form: TypeAlias = FrozenTree | FrozenLabelTree


def texts_of_rows(
    texts: Sequence[str], X: Any, y: Any, data: TrainingData, classes: AnyArray
) -> AnyArray:
    """Return a text of each row of training data, where equal rows of a class are one.

    Parameters
    ----------
    texts : sequence of str
    X, y
        The rows that were made of them, and their labels.
    data : TrainingData
        What was read of these.
    classes : ndarray of shape (n_classes,)
    """
    rows = as_rows(check_array(X, accept_sparse="csr", dtype=PARAM))
    given = zip(hash_rows(rows).tolist(), class_ids(classes, np.asarray(y)).tolist(), strict=True)
    known = dict(zip(given, texts, strict=True))
    read = zip(hash_rows(data.X).tolist(), data.y.tolist(), strict=True)
    out = np.empty(data.n_rows, dtype=object)
    out[:] = [known[row] for row in read]
    return out


def fitted_label_tree(
    texts: AnyArray, data: TrainingData, classes: AnyArray, seed: int, **options: Any
) -> LabelTreeClassifier:
    """Return a label tree, trained on one thread: more would give other bits each time."""
    weight = None if np.ptp(data.weight) == 0.0 else data.weight
    model = LabelTreeClassifier(random_state=seed, **options)
    return model.fit(texts.tolist(), classes[data.y], weight)


def derived(variant: Variant, form: Form) -> Form:
    """Return a model deployed in some way; of a label tree, there is only one."""
    return form if isinstance(form, FrozenLabelTree) else variant.of(form)


def n_trees_of(form: Form) -> int:
    """Return how many trees a model has."""
    return 1 if isinstance(form, FrozenLabelTree) else form.n_trees
