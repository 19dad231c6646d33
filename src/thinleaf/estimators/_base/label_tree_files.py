"""Files of label trees: a whole fitted estimator, which predicts and shows its tree as before.

How trees, words and contexts are stored and checked is in ``labeltree.files``; here are labels,
parameters and what else scikit-learn's classes have. There is no packed form beside it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from thinleaf._dtypes import OFFSET, PARAM, AnyArray
from thinleaf._version import __version__
from thinleaf.arrays.files import (
    ModelFileError,
    pack_strings,
    read_arrays,
    typed,
    unpack_strings,
    write_arrays,
)
from thinleaf.estimators._base.storable import plain_parameters
from thinleaf.labeltree import stored as files
from thinleaf.labeltree.output_layers import FlatOutput, TreeOutput
from thinleaf.model.file_parts import (
    LABEL_TREE_FORMAT,
    Section,
    label_arrays,
    pack_labels,
    section_arrays,
    unpack_labels,
    unpack_sections,
)

if TYPE_CHECKING:
    from thinleaf.estimators.label_tree import LabelTreeClassifier
    from thinleaf.estimators.language_model import LabelTreeLanguageModel

VERSION = 1
_BEFORE = {"start": "balanced", "max_share": None}
"""Parameters that a classifier of an earlier file does not have, as they were."""

_NODES = {
    f"nodes.{name}"
    for name in (
        "children", "weights", "bias", "quality.J", "quality.J_max", "quality.balancedness",
        "quality.purity", "quality.n_labels", "quality.n_examples",
    )
}  # fmt: skip


class LabelTreeFile(NamedTuple):
    """What a file of a label tree holds."""

    estimator: Any
    summary: dict[str, Any]
    """Anything about the training."""
    sections: dict[str, Section]
    """What others added, such as how data files are laid out."""


def save_classifier(
    clf: LabelTreeClassifier,
    path: str | os.PathLike[str],
    summary: Mapping[str, Any] | None = None,
    sections: Mapping[str, Section] | None = None,
) -> None:
    """Write a fitted classifier."""
    model = clf.model_
    labels, kind = pack_labels(clf.classes_)
    arrays = files.node_arrays(model, clf.quality_) | labels
    arrays |= {"U": model.U, "class_count": clf.class_count_}
    fitted: dict[str, Any] = {
        "labels": kind,
        "n_classes": int(clf.classes_.size),
        "scale": float(model.scale),
        "history": clf.history_,
        "words": None,
        "feature_names": hasattr(clf, "feature_names_in_"),
    }
    if clf.features_ is not None:
        more, fitted["words"] = files.word_arrays(clf.features_)
        arrays |= more
    elif fitted["feature_names"]:
        arrays |= pack_strings([str(name) for name in clf.feature_names_in_], "features")
    parameters = plain_parameters(clf, given_tree=not isinstance(clf.tree, str))
    _write(path, clf, parameters, arrays, fitted, summary, sections)


def save_language_model(model: LabelTreeLanguageModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted language model."""
    core, output = model.core_, model.output_
    arrays = files.context_arrays(core) | pack_strings(model.vocabulary_, "words")
    arrays["word_count"] = model.word_count_
    if isinstance(output, TreeOutput) and model.quality_ is not None:
        arrays |= files.node_arrays(output.model, model.quality_)
    elif isinstance(output, FlatOutput):
        arrays["flat.bias"] = output.bias
    n_context, dim = core.R.shape[:2]  # not what set_params may have made of them since
    parameters = plain_parameters(model) | {"n_context": n_context, "dim": dim}
    fitted = {"history": model.history_, "flat": isinstance(output, FlatOutput)}
    _write(path, model, parameters, arrays, fitted)


def _write(
    path: str | os.PathLike[str],
    estimator: Any,
    parameters: dict[str, Any],
    arrays: dict[str, AnyArray],
    fitted: dict[str, Any],
    summary: Mapping[str, Any] | None = None,
    sections: Mapping[str, Section] | None = None,
) -> None:
    metadata = {
        "format": LABEL_TREE_FORMAT,
        "version": VERSION,
        "estimator": type(estimator).__name__,
        "parameters": parameters,
        "fitted": fitted,
        "summary": {"thinleaf": __version__, **(summary or {})},
        "sections": {name: dict(part.metadata) for name, part in (sections or {}).items()},
    }
    write_arrays(Path(path), arrays | section_arrays(sections or {}), metadata)


def read_label_tree(path: str | os.PathLike[str], *, mapped: bool = True) -> LabelTreeFile:
    """Return what a file holds; :class:`ModelFileError` if it is damaged."""
    arrays, metadata = read_arrays(Path(path), mapped=mapped)
    try:
        with np.errstate(all="ignore"):
            return _from_file(arrays, metadata)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{path} is no valid file of a label tree: {error}") from error


def _from_file(arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any]) -> LabelTreeFile:
    if metadata.get("format") != LABEL_TREE_FORMAT:
        raise ValueError(f"its format is not {LABEL_TREE_FORMAT!r}")
    if type(metadata.get("version")) is not int or metadata["version"] != VERSION:
        raise ValueError(
            f"its format version is {metadata.get('version')!r}, this thinleaf reads {VERSION}: "
            "update thinleaf, or save the model again"
        )
    fitted, parameters = typed(metadata, "fitted", dict), typed(metadata, "parameters", dict)
    if not all(type(entry) is dict for entry in typed(fitted, "history", list)):
        raise ValueError("history must be a list of objects")
    readers = {"LabelTreeClassifier": _classifier, "LabelTreeLanguageModel": _language_model}
    name = typed(metadata, "estimator", str)
    if name not in readers:
        raise ValueError(f"unknown estimator {name!r}")
    estimator, own = readers[name](arrays, fitted, parameters)
    others = {key: array for key, array in arrays.items() if key not in own}
    sections = unpack_sections(others, typed(metadata, "sections", dict))
    return LabelTreeFile(estimator, typed(metadata, "summary", dict), sections)


def _classifier(
    arrays: Mapping[str, AnyArray], fitted: dict[str, Any], parameters: dict[str, Any]
) -> tuple[LabelTreeClassifier, set[str]]:
    from thinleaf.estimators.label_tree import LabelTreeClassifier

    kind, n_classes = typed(fitted, "labels", str), typed(fitted, "n_classes", int)
    own = _NODES | label_arrays(kind) | {"U", "class_count"}
    classes = unpack_labels(arrays, kind, n_classes)
    if classes.shape != (n_classes,) or not np.all(classes[1:] > classes[:-1]):
        raise ValueError(f"labels must be {n_classes} in ascending order")
    U, counts = files.taken(arrays, "U", PARAM), files.taken(arrays, "class_count", OFFSET)
    if U.ndim != 2 or U.shape[1] < 1:
        raise ValueError(f"U cannot have shape {U.shape}")
    if counts.shape != classes.shape or np.any(counts < 0):
        raise ValueError("class_count must be one for each label")
    scale = typed(fitted, "scale", float)
    if not 0.0 < scale < np.inf:
        raise ValueError(f"scale cannot be {scale}")
    model, quality = files.nodes_of(arrays, n_classes, U, scale)
    clf = LabelTreeClassifier(**_BEFORE | parameters | _tree(parameters, model.tree))
    clf._validate_params()
    clf.features_ = None
    if fitted["words"] is not None:
        own.add("words.keys")
        clf.features_ = files.words_of(arrays, typed(fitted, "words", dict))
        if clf.features_.n_features != U.shape[0]:
            raise ValueError(f"there are {clf.features_.n_features} terms, but {U.shape[0]} in U")
    else:
        clf.n_features_in_ = U.shape[0]
        if typed(fitted, "feature_names", bool):
            own |= {"features.utf8", "features.ptr"}
            clf.feature_names_in_ = np.array(unpack_strings(arrays, "features"), dtype=object)
            if clf.feature_names_in_.shape != (U.shape[0],):
                raise ValueError("each feature must have a name")
    clf.classes_, clf.class_count_, clf.history_ = classes, counts, fitted["history"]
    clf.model_, clf.quality_ = model, quality
    return clf, own


def _language_model(
    arrays: Mapping[str, AnyArray], fitted: dict[str, Any], parameters: dict[str, Any]
) -> tuple[LabelTreeLanguageModel, set[str]]:
    from thinleaf.estimators.language_model import LabelTreeLanguageModel

    model = LabelTreeLanguageModel(**parameters)
    model._validate_params()
    own = {"context.U", "context.R", "words.utf8", "words.ptr", "word_count"}
    words, counts = unpack_strings(arrays, "words"), files.taken(arrays, "word_count", OFFSET)
    if not words or len(set(words)) != len(words):
        raise ValueError("a word occurs twice, or there is none")
    if counts.shape != (len(words),) or np.any(counts < 0):
        raise ValueError("word_count must be one for each word")
    model._set_vocabulary(words, counts)
    model.core_ = files.context_of(arrays, len(words), model.n_context, model.dim)
    model.history_, model.quality_ = fitted["history"], None
    if typed(fitted, "flat", bool):
        own.add("flat.bias")
        flat = FlatOutput(model.core_, len(words))
        flat.bias = files.taken(arrays, "flat.bias", PARAM)
        if flat.bias.shape != (1, len(words)):
            raise ValueError("flat.bias must be one for each word")
        model.output_ = flat
    else:
        own |= _NODES
        identity = np.eye(model.dim, dtype=PARAM)
        nodes, model.quality_ = files.nodes_of(arrays, len(words), identity)
        model.output_ = TreeOutput(nodes)
    return model, own


def _tree(parameters: Mapping[str, Any], tree: Any) -> dict[str, Any]:
    """Return the parameter ``tree``: the model's own, if it was given."""
    return {"tree": tree} if parameters.get("tree") is None else {}
