"""From a model to a page: what goes into which block, what fits, and the file."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from thinleaf._dtypes import INDEX, PARAM, AnyArray
from thinleaf._version import __version__
from thinleaf.arrays.replace import replace_file
from thinleaf.explain.explorer.block import Block
from thinleaf.explain.explorer.counts import NodeCounts
from thinleaf.explain.explorer.fitting import Answering, bytes_of, fitted_leaves, fitted_lighter
from thinleaf.explain.explorer.inputs import PageInput, feature_namer, page_input
from thinleaf.explain.explorer.lighter import agreement
from thinleaf.explain.explorer.outline import Outline, label_nodes, outline_of
from thinleaf.explain.explorer.samples import count_all
from thinleaf.explain.explorer.weights import (
    TopFeatures,
    add_label_nodes,
    add_routers,
    routers_of,
    top_features,
    top_features_of_labels,
)
from thinleaf.model.explanation.in_words import percent
from thinleaf.model.frozen import FrozenModel, FrozenTree
from thinleaf.model.packing import PackedTree

FORMAT = 1
SCRIPTS = (
    "unpack.js", "reader.js", "predict.js", "model.js", "layout.js", "draw.js", "words.js",
    "answers.js", "details.js", "outline.js", "search.js", "app.js",
)  # fmt: skip
"""What the script of a page is put together from, in this order."""

_SURELY_TOO_LARGE = 1.5
"""How many times the room a model takes, about, that is not tried as it is."""

_FOR_NOTES = 500
_FEW_NODES = 4000
_SHOWN = 60


@dataclass(frozen=True)
class Page:
    """What was written.

    Attributes
    ----------
    path : str
    nbytes : int
    n_leaves : int
        Leaves of the model.
    n_answering : int
        How many of them are in the page with all that an answer needs.
    notes : list of str
        What the page had to leave out, in words.
    approximate : bool
        Whether a lighter model answers in the page, since this one does not fit.
    """

    path: str
    nbytes: int
    n_leaves: int
    n_answering: int
    notes: list[str] = field(default_factory=list)
    approximate: bool = False


def explore(
    model: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    title: str | None = None,
    n_examples: int = 4,
    max_mb: float = 25.0,
    exact: bool = False,
) -> Page:
    """Write a page in which a model's tree can be walked.

    Parameters
    ----------
    model : estimator or frozen model
    path : path-like
        An ``.html`` file; one of that name is replaced.
    X : optional
        Rows or texts to count at the nodes, and to show examples of.
    y : array-like, optional
        Their labels.
    title : str, optional
    n_examples : int
        How many examples of each leaf to show, of those predicted right and of the others. They
        are in the page as they are: 0 for data that must not be passed on.
    max_mb : float
        The size of the file, in millions of bytes, above which parts are left out.
    exact : bool
        Whether to leave out leaves rather than to round and drop weights, if the model does not
        fit.

    Returns
    -------
    Page
    """
    frozen = _frozen(model)
    counts = None
    if X is not None:
        counts = NodeCounts(frozen, n_examples=n_examples)
        count_all(counts, frozen, X, y)
    elif y is not None:
        raise ValueError("y are labels of X: give X, too")
    return write_page(frozen, path, counts, title=title, max_mb=max_mb, exact=exact)


def write_page(
    model: FrozenModel,
    path: str | os.PathLike[str],
    counts: NodeCounts | None = None,
    *,
    title: str | None = None,
    max_mb: float = 25.0,
    exact: bool = False,
    feature_name: Callable[[int], str] | None = None,
) -> Page:
    """Write a page of a frozen model.

    Parameters
    ----------
    model : FrozenModel
    path : path-like
    counts : NodeCounts, optional
        Of rows.
    title, max_mb, exact
        As of :func:`explore`.
    feature_name : callable, optional
        Names features of rows, where the model does not.
    """
    if not max_mb > 0.0:
        raise ValueError(f"max_mb must be above 0, got {max_mb!r}")
    name = title or f"{type(model).__name__}: {model.shape}"
    maker = _Maker(model, counts, name, int(1e6 * max_mb), exact, feature_name)
    content = maker.page()
    with replace_file(path) as temporary:
        temporary.write_text(content, encoding="utf-8", errors="replace")
    return Page(
        os.fspath(path), len(content.encode()), maker.outline.n_leaves, maker.n_answering,
        maker.notes, maker.approximate,
    )  # fmt: skip


class _Maker:
    """Puts a page together, and knows what was left out."""

    def __init__(
        self,
        model: FrozenModel,
        counts: NodeCounts | None,
        title: str,
        limit: int,
        exact: bool,
        feature_name: Callable[[int], str] | None,
    ) -> None:
        self.model, self.counts, self.title, self.limit = model, counts, title, limit
        self.exact, self.approximate = exact, False
        self.outline: Outline = outline_of(model) if counts is None else counts.outline
        self.input: PageInput = page_input(model, feature_name)
        self.name = feature_namer(model, self.input, feature_name)
        self.notes: list[str] = []
        self.n_answering = 0
        if isinstance(model, FrozenTree):
            model.check()

    def page(self) -> str:
        """Return the page."""
        frame = _frame(self.title)
        top = self._top_features()
        with_examples = True
        tree = self._tree_block(top, with_examples=True).packed()
        used = len(frame.encode()) + _FOR_NOTES
        if used + len(tree) > self.limit and self.counts is not None and self.counts.examples:
            with_examples = False
            self.notes.append("Examples do not fit into the page.")
            tree = self._tree_block(top, with_examples=False).packed()
        answering = self._answering(self.limit - used - len(tree))
        self.n_answering = answering.n_leaves
        if self.notes:  # which the page says, too
            tree = self._tree_block(top, with_examples=with_examples).packed()
        parts = {"tree": tree, "model": answering.model, "leaves": answering.leaves}
        return frame.replace("{{blocks}}", "\n".join(_element(k, v) for k, v in parts.items()))

    def _answering(self, room: int) -> Answering:
        """Return what answers, as much of it as there is room for, and note what is not so."""
        if isinstance(self.model, FrozenTree):
            return self._answering_tree(self.model, room)
        n_leaves = self.outline.n_leaves
        for rounded in (False, True):
            found = Answering(self._label_block(rounded).packed(), "", n_leaves)
            if found.size <= room and rounded:
                self.approximate = True
                self.notes.append(
                    "The model is too large for the page, which holds its weights as float16: "
                    "answers are approximate."
                )
            if found.size <= room:
                return found
            if self.exact:
                break
        return self._nothing()

    def _answering_tree(self, model: FrozenTree, room: int) -> Answering:
        whole = self.exact or bytes_of(model.packed) < _SURELY_TOO_LARGE * room
        found = (
            fitted_leaves(self._model_block, model.packed, room, self._importance())
            if whole
            else None
        )
        if found is not None and found.n_leaves == self.outline.n_leaves:
            return found
        if not self.exact:
            spread = self.input.spread(model.n_features)
            approximate = fitted_lighter(self._model_block, model, spread, room)
            if approximate is not None:
                self.approximate = True
                self.notes.append(self._how_alike(model, *approximate[1:]))
                return approximate[0]
        if found is None:
            return self._nothing()
        self.notes.append(
            f"The weights of {found.n_leaves:,} of {self.outline.n_leaves:,} leaves fit into the "
            "page: what ends in one of the others is shown with its path, without probabilities."
        )
        return found

    def _nothing(self) -> Answering:
        self.notes.append(
            "The model is too large for the page: its tree is here, but nothing can be typed."
        )
        return Answering("", "", 0)

    def _how_alike(self, model: FrozenTree, other: FrozenTree, share: float) -> str:
        said = "The model is too large for the page: answers are approximate, by "
        said += (
            "its weights"
            if share >= 1.0
            else f"the {percent(share)} of its weights that matter most"
        )
        said += ", rounded."
        samples = [] if self.counts is None else self.counts.samples
        if not samples:
            return said
        found = [agreement(model, other, rows) for rows in samples]
        sizes = np.array([part.n_rows for part in found])
        same = float(np.average([part.same for part in found], weights=sizes))
        apart = float(np.average([part.difference for part in found], weights=sizes))
        return (
            f"{said} Of {sizes.sum():,} rows of the data, {percent(same)} get the label of the "
            f"model; its probability differs by {apart:.2g} on average."
        )

    # -- blocks ------------------------------------------------------------------------------------

    def _tree_block(self, top: TopFeatures | None, *, with_examples: bool) -> Block:
        outline, counts = self.outline, self.counts
        block = Block(self._values())
        block.add_rising("first_child", outline.first_child)
        block.add("n_children", outline.n_children)
        block.add("branch", outline.branch)
        block.add("source", outline.source)
        block.add("class_sizes", np.diff(outline.class_ptr))
        block.add_rising("class_ids", outline.class_ids)
        block.add_strings("labels", map(str, self.model.labels.tolist()))
        if top is not None:
            used, at = np.unique(top.features, return_inverse=True)
            block.add("top.sizes", top.sizes)
            block.add("top.names", at.astype(INDEX))
            block.add("top.weights", top.weights.astype(PARAM))
            block.add("top.classes", top.classes)
            block.add("top.effects", top.effects)
            block.add("top.features", used.astype(INDEX))
            name = self.name or str
            block.add_strings("top_names", [name(int(f)) for f in used])
        if counts is not None:
            block.add("rows", counts.n_rows)
            block.add("labelled", counts.n_labelled)
            block.add("wrong", counts.n_wrong)
            if isinstance(self.model, FrozenTree):
                block.add("class_rows", counts.class_rows)
            if with_examples:
                block.values["examples"] = counts.examples
        return block

    def _values(self) -> dict[str, Any]:
        model, counts = self.model, self.counts
        return {
            "format": FORMAT,
            "version": __version__,
            "kind": "softmax" if isinstance(model, FrozenTree) else "labels",
            "title": self.title,
            "trees": self.outline.n_trees,
            "beam": model.beam,
            "temperature": model.temperature,
            "greedy": bool(getattr(model._predictor, "greedy", False)),
            "features": model.n_features,
            "bytes": model.nbytes,
            "weights": model.packed.weights if isinstance(model, FrozenTree) else "float32",
            "summary": _plain(model.summary),
            "input": self.input.values,
            "notes": self.notes,
            "approximate": self.approximate,
            "data": None if counts is None else {
                "name": counts.name,
                "rows": counts.total,
                "labelled": counts.labelled,
                "wrong": counts.wrong,
            },
        }  # fmt: skip

    def _top_features(self) -> TopFeatures | None:
        if self.name is None:
            return None
        n = 8 if self.outline.n_nodes <= _FEW_NODES else 4
        if isinstance(self.model, FrozenTree):
            spread = self.input.spread(self.model.n_features)
            return top_features(self.model.packed, routers_of(self.model.packed), spread, n)
        nodes = label_nodes(self.model)
        assert nodes is not None
        return top_features_of_labels(self.outline, nodes, n)

    def _model_block(self, packed: PackedTree) -> Block:
        """Return what reads an input and takes it to leaves."""
        block = Block()
        self.input.add_to(block)
        add_routers(block, packed, routers_of(packed))
        return block

    def _label_block(self, rounded: bool) -> Block:
        nodes = label_nodes(self.model)
        assert nodes is not None
        block = Block()
        self.input.add_to(block)
        add_label_nodes(block, nodes, rounded=rounded)
        return block

    def _importance(self) -> AnyArray:
        """Return how much a leaf is worth: its rows, or its classes if none were counted."""
        if self.counts is None:
            return np.diff(self.outline.class_ptr).astype(float)
        return self.counts.n_rows + 0.5


# -- the file --------------------------------------------------------------------------------------


def _frame(title: str) -> str:
    """Return the page without its blocks."""
    parts = "\n".join(_asset(name) for name in SCRIPTS)
    script = f'(() => {{\n"use strict";\n{parts}\n}})();\n'
    style = _asset("explorer.css")
    fills = {
        "title": escape(title),
        "script": script,
        "style": style,
        "script_hash": _hash(script),
        "style_hash": _hash(style),
        "blocks": "{{blocks}}",
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda m: fills[m[1]], _asset("explorer.html"))


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"sha256-{digest}"


def _element(name: str, content: str) -> str:
    return f'<script type="text/plain" id="block-{name}">{content}</script>'


def _asset(name: str) -> str:
    found = files("thinleaf.explain.explorer").joinpath("assets", name)
    return found.read_text(encoding="utf-8")


def _plain(summary: dict[str, Any]) -> dict[str, str]:
    """Return what is known of the training as short strings."""
    kept = {k: v for k, v in summary.items() if v is not None and not isinstance(v, dict | list)}
    return {str(k)[:_SHOWN]: str(v)[:_SHOWN] for k, v in kept.items()}


def _frozen(model: Any) -> FrozenModel:
    if isinstance(model, FrozenModel):
        return model
    if not hasattr(model, "freeze"):
        raise ValueError(f"a {type(model).__name__} has no tree to explore")
    frozen: FrozenModel = model.freeze()
    return frozen
