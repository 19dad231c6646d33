"""Estimators of label trees from files: classifiers from their frozen form, and language models.

How trees, words and contexts are stored and checked is in :mod:`thinleaf.labeltree.stored`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thinleaf._dtypes import OFFSET, PARAM, AnyArray
from thinleaf._version import __version__
from thinleaf.arrays.files import ModelFileError, pack_strings, read_arrays, typed, unpack_strings
from thinleaf.estimators._base.storable import plain_parameters, rebuild
from thinleaf.labeltree import stored
from thinleaf.labeltree.frozen import FrozenLabelTree, file_metadata, file_parts, frozen_label_tree
from thinleaf.labeltree.output_layers import FlatOutput, TreeOutput
from thinleaf.model.model_file import other_sections, write_model

if TYPE_CHECKING:
    from thinleaf.estimators.label_tree import LabelTreeClassifier
    from thinleaf.estimators.language_model import LabelTreeLanguageModel

_BEFORE = {"start": "balanced", "max_share": None}
"""Parameters that a classifier of an earlier file does not have, as they were."""


def read_label_tree(path: str | os.PathLike[str]) -> Any:
    """Return the estimator of a file; :class:`ModelFileError` if it is damaged."""
    arrays, metadata = read_arrays(Path(path))
    try:
        with np.errstate(all="ignore"):
            if file_parts(metadata)[0] == "LabelTreeLanguageModel":
                return _language_model(arrays, metadata)
            return _estimator(frozen_label_tree(arrays, metadata))
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{path} is no valid file of a label tree: {error}") from error


def _estimator(frozen: FrozenLabelTree) -> Any:
    """Return the label tree, or the classifier of texts that it was saved by."""
    section = frozen.sections.get("training")
    return classifier_of(frozen) if section is None else rebuild(section, frozen)


def classifier_of(frozen: FrozenLabelTree) -> LabelTreeClassifier:
    """Return the estimator of a frozen label tree, fitted."""
    from thinleaf.estimators.label_tree import LabelTreeClassifier

    parameters = _BEFORE | frozen.training.parameters
    if parameters.get("tree") is None:  # it was given: the model has it
        parameters["tree"] = frozen.model.tree
    clf = LabelTreeClassifier(**parameters)
    clf._validate_params()
    clf.features_ = frozen.words
    if frozen.words is None:
        clf.n_features_in_ = frozen.n_features
        if frozen.feature_names is not None:
            clf.feature_names_in_ = np.array(frozen.feature_names, dtype=object)
    clf.classes_, clf.model_ = frozen.labels.copy(), frozen.model
    _, clf.history_, clf.quality_, clf.class_count_ = frozen.training
    return clf


def save_language_model(model: LabelTreeLanguageModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted language model."""
    core, output = model.core_, model.output_
    arrays = stored.context_arrays(core) | pack_strings(model.vocabulary_, "words")
    arrays["word_count"] = model.word_count_
    if isinstance(output, TreeOutput) and model.quality_ is not None:
        arrays |= stored.node_arrays(output.nodes, model.quality_)
    elif isinstance(output, FlatOutput):
        arrays["flat.bias"] = output.bias
    n_context, dim = core.R.shape[:2]  # not what set_params may have made of them since
    parameters = plain_parameters(model) | {"n_context": n_context, "dim": dim}
    fitted = {"history": model.history_, "flat": isinstance(output, FlatOutput)}
    metadata = file_metadata(type(model).__name__, parameters, fitted)
    write_model(path, arrays, metadata, {"thinleaf": __version__}, {})


def _language_model(
    arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any]
) -> LabelTreeLanguageModel:
    from thinleaf.estimators.language_model import LabelTreeLanguageModel

    _, parameters, fitted = file_parts(metadata)
    model = LabelTreeLanguageModel(**parameters)
    model._validate_params()
    own = {"context.U", "context.R", "words.utf8", "words.ptr", "word_count"}
    words, counts = unpack_strings(arrays, "words"), stored.taken(arrays, "word_count", OFFSET)
    if not words or len(set(words)) != len(words):
        raise ValueError("a word occurs twice, or there is none")
    if counts.shape != (len(words),) or np.any(counts < 0):
        raise ValueError("word_count must be one for each word")
    model._set_vocabulary(words, counts)
    model.core_ = stored.context_of(arrays, len(words), model.n_context, model.dim)
    model.history_, model.quality_ = fitted["history"], None
    if typed(fitted, "flat", bool):
        own.add("flat.bias")
        flat = FlatOutput(model.core_, len(words))
        flat.bias = stored.taken(arrays, "flat.bias", PARAM)
        if flat.bias.shape != (1, len(words)):
            raise ValueError("flat.bias must be one for each word")
        model.output_ = flat
    else:
        own |= stored.NODE_ARRAYS
        nodes, model.quality_ = stored.nodes_of(arrays, len(words), model.dim)
        model.output_ = TreeOutput(nodes)
    other_sections(arrays, own, metadata)  # there is nothing else in the file
    return model
