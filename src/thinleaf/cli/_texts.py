"""How ``train`` makes a classifier of texts: the one that Python users have."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any


def text_options(text: str | None, **given: Any) -> dict[str, Any]:
    """Return what was said of features, as settings of :class:`~thinleaf.text.TextFeatures`.

    Parameters
    ----------
    text : str or None
        Kind of features.
    **given
        Other settings; None is not given.

    Raises
    ------
    ValueError
        If settings are given of what the texts are to choose.
    """
    settings = {name: value for name, value in given.items() if value is not None}
    if text == "auto" and settings:
        raise ValueError("--text auto chooses features by the texts: leave out what is set of them")
    if text in ("tfidf", "words"):
        text = "tfidf"
    elif text in (None, "auto"):
        text = "tfidf" if settings else None
    return settings if text is None else {"kind": text} | settings


def sentence_encoder(directory: str | None, jobs: int = 1) -> Any:
    """Return the encoder of a local directory, with so many threads, or None if none is given."""
    if directory is None:
        return None
    from thinleaf.text import SentenceEncoder

    return SentenceEncoder(directory, n_jobs=jobs if jobs > 0 else os.cpu_count() or 1)


def text_classifier(
    estimator: Any, settings: Mapping[str, Any], encoder: Any = None, **options: Any
) -> Any:
    """Return a :class:`thinleaf.TextClassifier`.

    Parameters
    ----------
    estimator : estimator
        Of rows.
    settings : mapping
        Of :class:`~thinleaf.text.TextFeatures`; if there are none, texts choose.
    encoder : callable, optional
        What makes rows of texts instead.
    **options
        Of the classifier.
    """
    from thinleaf.estimators import TextClassifier
    from thinleaf.text.features import TextFeatures

    features: Any = encoder or (TextFeatures(**settings) if settings else "auto")
    return TextClassifier(estimator, features, **options)


def column_names(reader: Any) -> dict[str, list[str]]:
    """Return the names of columns that were read one by one, as a classifier is told them."""
    found = reader.columns
    texts, numeric = ([str(found.names[i]) for i in at] for at in (found.text, found.numeric))
    return {"text_columns": texts, "numeric_columns": numeric}


def model_of(estimator: Any) -> Any:
    """Return what was trained on rows, in a classifier of texts or alone."""
    from thinleaf.estimators import TextClassifier

    return estimator.model_ if isinstance(estimator, TextClassifier) else estimator


def hush(estimator: Any) -> None:
    """Let neither an estimator nor what it was made of say anything when it is used again."""
    from thinleaf.estimators import TextClassifier

    estimators = [estimator]
    if isinstance(estimator, TextClassifier):
        estimators = [estimator.model, estimator.model_]
    for each in estimators:
        each.set_params(verbose=0)
