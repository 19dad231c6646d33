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

from thinleaf._dtypes import INDEX, PARAM, AnyArray, IndexArray
from thinleaf._version import __version__
from thinleaf.arrays.replace import replace_file
from thinleaf.explain.explorer.block import Block
from thinleaf.explain.explorer.counts import NodeCounts
from thinleaf.explain.explorer.inputs import PageInput, feature_namer, page_input
from thinleaf.explain.explorer.outline import Outline, label_nodes, outline_of
from thinleaf.explain.explorer.samples import count_all
from thinleaf.explain.explorer.weights import (
    TopFeatures,
    add_label_nodes,
    add_leaves,
    add_routers,
    entries_of_leaves,
    routers_of,
    top_features,
    top_features_of_labels,
)
from thinleaf.model.frozen import FrozenModel, FrozenTree

FORMAT = 1
SCRIPTS = (
    "unpack.js", "reader.js", "predict.js", "model.js", "layout.js", "draw.js", "words.js",
    "answers.js", "details.js", "outline.js", "search.js", "app.js",
)  # fmt: skip
"""What the script of a page is put together from, in this order."""

_BYTES_AN_ENTRY = {"float32": 6.6, "float16": 4.2, "int8": 2.6}
"""What a weight of a leaf takes in a page, about: value and place, deflated, in base64."""

_MOST_TRIES = 5
"""How often leaves are packed until they fill the room that there is."""

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
    """

    path: str
    nbytes: int
    n_leaves: int
    n_answering: int
    notes: list[str] = field(default_factory=list)


def explore(
    model: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    title: str | None = None,
    n_examples: int = 4,
    max_mb: float = 25.0,
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
    return write_page(frozen, path, counts, title=title, max_mb=max_mb)


def write_page(
    model: FrozenModel,
    path: str | os.PathLike[str],
    counts: NodeCounts | None = None,
    *,
    title: str | None = None,
    max_mb: float = 25.0,
    feature_name: Callable[[int], str] | None = None,
) -> Page:
    """Write a page of a frozen model.

    Parameters
    ----------
    model : FrozenModel
    path : path-like
    counts : NodeCounts, optional
        Of rows.
    title, max_mb
        As of :func:`explore`.
    feature_name : callable, optional
        Names features of rows, where the model does not.
    """
    if not max_mb > 0.0:
        raise ValueError(f"max_mb must be above 0, got {max_mb!r}")
    name = title or f"{type(model).__name__}: {model.shape}"
    maker = _Maker(model, counts, name, int(1e6 * max_mb), feature_name)
    content = maker.page()
    with replace_file(path) as temporary:
        temporary.write_text(content, encoding="utf-8", errors="replace")
    return Page(
        os.fspath(path), len(content.encode()), maker.outline.n_leaves, maker.n_answering,
        maker.notes,
    )  # fmt: skip


class _Maker:
    """Puts a page together, and knows what was left out."""

    def __init__(
        self,
        model: FrozenModel,
        counts: NodeCounts | None,
        title: str,
        limit: int,
        feature_name: Callable[[int], str] | None,
    ) -> None:
        self.model, self.counts, self.title, self.limit = model, counts, title, limit
        self.outline: Outline = outline_of(model) if counts is None else counts.outline
        self.input: PageInput = page_input(model, feature_name)
        self.name = feature_namer(model, self.input, feature_name)
        self.notes: list[str] = []
        self.n_answering = 0
        if isinstance(model, FrozenTree):
            model.check()
            self._routers = routers_of(model.packed)

    def page(self) -> str:
        """Return the page."""
        frame = _frame(self.title)
        used = len(frame.encode())
        top = self._top_features()
        answering, kept = self._answering()
        blocks, leaves = {"model": answering}, ""
        tree = self._tree_block(top, with_examples=True).packed()
        if used + len(tree) > self.limit and self.counts is not None and self.counts.examples:
            self.notes.append("Examples do not fit into the page.")
            tree = self._tree_block(top, with_examples=False).packed()
        used += len(tree)
        if used + len(answering) + _FOR_NOTES > self.limit:
            self.notes.append(
                "The model is too large for the page: its tree is here, but nothing can be typed."
            )
            blocks["model"], kept = "", np.empty(0, INDEX)
        elif isinstance(self.model, FrozenTree):
            leaves, kept = self._leaves(self.limit - used - len(answering) - _FOR_NOTES)
        self.n_answering = int(kept.size)
        if blocks["model"] and kept.size < self.outline.n_leaves:
            n, n_all = kept.size, self.outline.n_leaves
            self.notes.append(
                f"The weights of {n:,} of {n_all:,} leaves fit into the page: what ends in one of "
                "the others is shown with its path, but without probabilities."
            )
        if self.notes:  # which the page says, too
            with_examples = not self.notes[0].startswith("Examples")
            tree = self._tree_block(top, with_examples=with_examples).packed()
        parts = {"tree": tree, "model": blocks["model"], "leaves": leaves}
        return frame.replace("{{blocks}}", "\n".join(_element(k, v) for k, v in parts.items()))

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
            return top_features(self.model.packed, self._routers, spread, n)
        nodes = label_nodes(self.model)
        assert nodes is not None
        return top_features_of_labels(self.outline, nodes, n)

    def _answering(self) -> tuple[str, IndexArray]:
        """Return the block that takes an input to leaves, and the leaves that then answer."""
        block = Block()
        self.input.add_to(block)
        if isinstance(self.model, FrozenTree):
            add_routers(block, self.model.packed, self._routers)
            return block.packed(), np.empty(0, INDEX)
        nodes = label_nodes(self.model)
        assert nodes is not None
        add_label_nodes(block, nodes)
        return block.packed(), np.arange(self.outline.n_leaves, dtype=INDEX)

    def _leaves(self, room: int) -> tuple[str, AnyArray]:
        """Return the block of as many leaves as there is room for, and which these are."""
        assert isinstance(self.model, FrozenTree)
        packed = self.model.packed
        cost = entries_of_leaves(packed) * _BYTES_AN_ENTRY[packed.weights] + 16.0
        order = np.argsort(-self._importance() / cost, kind="stable")
        best: tuple[str, AnyArray] = "", np.empty(0, INDEX)
        allowed = float(max(room, 0))
        for _ in range(_MOST_TRIES):
            taken = order[np.cumsum(cost[order]) <= allowed]
            block = Block()
            add_leaves(block, packed, np.sort(taken).astype(INDEX))
            text = block.packed()
            if best[1].size < taken.size and len(text) <= room:
                best = text, np.sort(taken).astype(INDEX)
            if taken.size == 0 or (len(text) <= room and taken.size == order.size):
                break
            if 0.94 * room <= len(text) <= room:
                break
            allowed *= 0.98 * room / len(text)
        return best

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
