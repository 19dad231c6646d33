"""What is different about label trees on the command line: how texts are trained on, and shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thinleaf.datasets.examples import Examples

_MAX_DEPTH = 2


def check_options(
    beam: int | str,
    temperature: float,
    weights: str,
    trainable: bool,
    apart: bool,
    encoder: str | None,
) -> None:
    """Refuse options of ``train`` that are for softmax trees."""
    given = {
        "--beam": beam != 1,
        "--temperature": temperature != 1.0,
        "--weights": weights != "float32",
        "--trainable": trainable,
        "--encoder": encoder is not None,
        "--separate-columns (or --numeric-column)": apart,
    }
    for name, wanted in given.items():
        if wanted:
            raise ValueError(f"{name} is for softmax trees, not for --model label-tree")


def take_ngrams(estimator: Any, settings: Mapping[str, Any]) -> None:
    """Give ``--ngrams`` to an estimator that makes features of texts itself."""
    low, high = settings.get("ngram_range", (1, 2))
    if low != 1:
        raise ValueError("terms of a label tree begin with single words: --ngrams 1-HIGH")
    if estimator.ngrams == type(estimator)().ngrams:  # not given by --set
        estimator.set_params(ngrams=high)


def describe(
    path: str, batches: Iterable[tuple[Examples, Any]] | None, *, n_children: int, n_labels: int
) -> tuple[dict[str, Any], str]:
    """Return J_n, β and α of every node as a record, and the upper part of the tree as text.

    Parameters
    ----------
    path : str
        A file of a label tree or of a language model.
    batches : iterable, optional
        Labelled examples and their rows, to have the figures of; else those of the training.
    n_children, n_labels : int
        How many children of a node to show, and how many labels to name.
    """
    from thinleaf import TextClassifier, load_estimator
    from thinleaf.labeltree.show import describe

    estimator = load_estimator(path)
    if isinstance(estimator, TextClassifier):
        estimator = estimator.model_
    quality = estimator.inspect() if batches is None else _quality(estimator, batches)
    if hasattr(estimator, "vocabulary_"):
        tree, names, counts = estimator.tree_, estimator.vocabulary_, estimator.word_count_
    else:
        tree, names = estimator.model_.tree, estimator.classes_.tolist()
        counts = estimator.class_count_
    return describe(
        tree, names, counts, quality,
        n_top=n_labels, max_depth=_MAX_DEPTH, max_children=n_children,
    )  # fmt: skip


def _quality(clf: Any, batches: Iterable[tuple[Examples, Any]]) -> Any:
    """Return the figures of all nodes on labelled rows."""
    import numpy as np

    from thinleaf.text.recipe import KnownLabels

    known = KnownLabels(clf.classes_)

    def parts() -> Iterator[Any]:
        for examples, X in batches:
            ids = known.ids(examples.labels)
            at = np.flatnonzero(ids >= 0)
            if at.size:
                yield clf.node_statistics(X[at], clf.classes_[ids[at]])

    quality = clf.quality_of(parts())
    if not np.any(quality.n_examples):
        raise ValueError("no line has a label that the model knows")
    return quality
