"""Label trees in the form that is deployed, and their files.

How trees and words are stored and checked is in :mod:`thinleaf.labeltree.stored`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from thinleaf._dtypes import OFFSET, PARAM, AnyArray, OffsetArray
from thinleaf._version import __version__
from thinleaf.arrays.checks import require
from thinleaf.arrays.files import pack_strings, typed, unpack_strings
from thinleaf.labeltree import stored
from thinleaf.labeltree.model import LabelTreeModel
from thinleaf.labeltree.predictor import LabelTreePredictor
from thinleaf.labeltree.statistics import NodeQuality
from thinleaf.labeltree.texts import text_list
from thinleaf.labeltree.word_features import WordFeatures
from thinleaf.labeltree.word_input import WordInput
from thinleaf.model.file_parts import (
    LABEL_TREE_FORMAT,
    Section,
    label_arrays,
    pack_labels,
    unpack_labels,
)
from thinleaf.model.frozen import FrozenModel
from thinleaf.model.model_file import check_version, other_sections, write_model
from thinleaf.text.rejecting import RejectingPredictions
from thinleaf.text.rejection import Rejection, stored_rejection

CLASSIFIER = "LabelTreeClassifier"


class Training(NamedTuple):
    """What a file of a label tree tells of its training, and an estimator is made from."""

    parameters: dict[str, Any]
    history: list[dict[str, Any]]
    quality: NodeQuality
    class_count: OffsetArray


class FrozenLabelTree(RejectingPredictions, FrozenModel):
    """A label tree that predicts, and does nothing else.

    Made by :meth:`LabelTreeClassifier.freeze` or :func:`thinleaf.load`. It takes rows, or if it was
    trained on texts, lists of strings. It knows when not to answer if it was trained in a
    :class:`thinleaf.TextClassifier`.

    Parameters
    ----------
    model : LabelTreeModel
    labels : ndarray of shape (n_labels,)
    training : Training
    words : WordFeatures, optional
        The terms of texts, if the model takes texts.
    greedy : bool
        How ``predict`` finds a label: by the most probable child of each node; else by branch and
        bound, which finds the most probable one.
    feature_names, summary, sections
        As of :class:`thinleaf.FrozenTree`.

    Examples
    --------
    >>> from thinleaf import LabelTreeClassifier
    >>> texts = ["a broken arm", "a broken leg", "high fever", "yellow fever"] * 5
    >>> y = ["fracture", "fracture", "fever", "fever"] * 5
    >>> clf = LabelTreeClassifier(dim=8, arity=2, epochs=20, random_state=0).fit(texts, y)
    >>> clf.freeze().predict_one("a broken toe")
    'fracture'
    """

    _predictor: LabelTreePredictor

    def __init__(
        self,
        model: LabelTreeModel,
        labels: AnyArray,
        training: Training,
        *,
        words: WordFeatures | None = None,
        greedy: bool = False,
        feature_names: list[str] | None = None,
        summary: Mapping[str, Any] | None = None,
        sections: Mapping[str, Section] | None = None,
    ) -> None:
        predictor = LabelTreePredictor(model, np.array(labels), words, greedy=greedy)
        super().__init__(predictor, feature_names, summary, sections)
        self._training = training

    @property
    def model(self) -> LabelTreeModel:
        """Tree, embeddings and parameters of the nodes."""
        return self._predictor.model

    @property
    def words(self) -> WordFeatures | None:
        """The terms of texts, if the model takes texts."""
        return self._predictor.words

    @cached_property
    def _text_input(self) -> WordInput | None:
        return None if self.words is None else WordInput(self.words)

    @property
    def _found_rejection(self) -> Rejection | None:
        return self.rejection

    @cached_property
    def rejection(self) -> Rejection | None:
        """When not to answer, or None if the file does not say."""
        return stored_rejection(self._sections)

    @property
    def training(self) -> Training:
        """What is known of the training."""
        return self._training

    @property
    def takes_texts(self) -> bool:
        """Whether input is texts instead of rows."""
        return self.words is not None

    @property
    def figures(self) -> dict[str, Any]:
        """Sizes by name, as JSON holds them."""
        return {
            "features": self.n_features,
            "classes": self.n_classes,
            "nodes": self.model.tree.n_nodes,
            "dim": self.model.U.shape[1],
        }

    @property
    def shape(self) -> str:
        """How many nodes there are, in words."""
        tree = self.model.tree
        return f"{tree.n_nodes:,} nodes of arity {tree.arity}, depth {tree.depth}"

    def __repr__(self) -> str:
        """Return the shape in one line."""
        kind = "terms" if self.takes_texts else "features"
        return (
            f"FrozenLabelTree({self.shape}, {self.n_classes} classes, {self.n_features} {kind}, "
            f"{self.nbytes:,} bytes)"
        )

    def replaced(self, **changes: Any) -> Self:
        """Return the same model with other arguments of the constructor; arrays are shared."""
        arguments: dict[str, Any] = {
            "model": self.model,
            "labels": self._predictor.labels,
            "training": self._training,
            "words": self.words,
            "greedy": self._predictor.greedy,
            "feature_names": self._feature_names,
            "summary": self._summary,
            "sections": self._sections,
        }
        return type(self)(**(arguments | changes))

    def _rows(self, X: Any) -> Any:
        return text_list(X) if self.takes_texts else super()._rows(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that :func:`thinleaf.load` and :func:`thinleaf.load_estimator` open."""
        model, training = self.model, self._training
        labels, kind = pack_labels(self.labels)
        arrays = stored.node_arrays(model, training.quality) | labels
        arrays |= {"U": model.U, "class_count": training.class_count}
        fitted: dict[str, Any] = {
            "labels": kind,
            "n_classes": self.n_classes,
            "scale": float(model.scale),
            "history": training.history,
            "words": None,
            "feature_names": self._feature_names is not None,
        }
        if self.words is not None:
            more, fitted["words"] = stored.word_arrays(self.words)
            arrays |= more
        if self._feature_names is not None:
            arrays |= pack_strings(self._feature_names, "features")
        metadata = file_metadata(CLASSIFIER, training.parameters, fitted)
        summary = {name: value for name, value in self._summary.items() if name != "estimator"}
        write_model(path, arrays, metadata, {"thinleaf": __version__, **summary}, self._sections)


def file_metadata(
    estimator: str, parameters: Mapping[str, Any], fitted: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the metadata of a file of a label tree or a language model."""
    return {
        "format": LABEL_TREE_FORMAT,
        "version": stored.VERSION,
        "estimator": estimator,
        "parameters": dict(parameters),
        "fitted": dict(fitted),
    }


def file_parts(metadata: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the estimator, its parameters and what was fitted of the metadata of a file."""
    require(metadata.get("format") == LABEL_TREE_FORMAT, f"its format is not {LABEL_TREE_FORMAT!r}")
    check_version(metadata, stored.VERSION)
    fitted, parameters = typed(metadata, "fitted", dict), typed(metadata, "parameters", dict)
    if not all(type(entry) is dict for entry in typed(fitted, "history", list)):
        raise ValueError("history must be a list of objects")
    return typed(metadata, "estimator", str), parameters, fitted


def frozen_label_tree(
    arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any]
) -> FrozenLabelTree:
    """Return the label tree of a file; ``ValueError`` if it is damaged."""
    name, parameters, fitted = file_parts(metadata)
    if name == "LabelTreeLanguageModel":
        raise ValueError("it holds a language model: open it with thinleaf.load_estimator")
    require(name == CLASSIFIER, f"unknown estimator {name!r}")
    kind, n_classes = typed(fitted, "labels", str), typed(fitted, "n_classes", int)
    own = stored.NODE_ARRAYS | label_arrays(kind) | {"U", "class_count"}
    labels = unpack_labels(arrays, kind, n_classes)
    if labels.shape != (n_classes,) or not np.all(labels[1:] > labels[:-1]):
        raise ValueError(f"labels must be {n_classes} in ascending order")
    U, counts = stored.taken(arrays, "U", PARAM), stored.taken(arrays, "class_count", OFFSET)
    require(U.ndim == 2 and U.shape[1] >= 1, f"U cannot have shape {U.shape}")
    fits = counts.shape == labels.shape and bool(np.all(counts >= 0))
    require(fits, "class_count must be one for each label")
    scale = typed(fitted, "scale", float)
    require(0.0 < scale < np.inf, f"scale cannot be {scale}")
    nodes, quality = stored.nodes_of(arrays, n_classes, U.shape[1])
    words, names = None, None
    if fitted["words"] is not None:
        own.add("words.keys")
        words = stored.words_of(arrays, typed(fitted, "words", dict))
        fits = words.n_features == U.shape[0]
        require(fits, f"there are {words.n_features} terms, but {U.shape[0]} in U")
    elif typed(fitted, "feature_names", bool):
        own |= {"features.utf8", "features.ptr"}
        names = unpack_strings(arrays, "features")
    search = parameters.get("search", "exact")
    require(search in ("exact", "greedy"), f"unknown search {search!r}")
    return FrozenLabelTree(
        LabelTreeModel(nodes.tree, nodes.weights, nodes.bias, U, scale),
        labels,
        Training(parameters, fitted["history"], quality, counts),
        words=words,
        greedy=search == "greedy",
        feature_names=names,
        summary={"estimator": name, **typed(metadata, "summary", dict)},
        sections=other_sections(arrays, own, metadata),
    )
