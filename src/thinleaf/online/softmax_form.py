"""An online model as the tree that it is at the moment, for :func:`thinleaf.model.packing.pack`.

A router of an online tree decides with a hyperplane, and a node chooses among its candidates with
one linear score each: that is a softmax tree. Where an example stops at an inner node, the tree has
a leaf in place of the child. Scales of features and weights of path features are constants by then,
and become part of weights and biases.

Leaves share the regressors until they are packed one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from thinleaf._dtypes import (
    INDEX,
    NO_CHILD,
    PARAM,
    AccumArray,
    AnyArray,
    BoolArray,
    IndexArray,
    ParamArray,
)
from thinleaf.model.tree import Leaf, Router
from thinleaf.online.linear_models import Models
from thinleaf.online.scaled_rows import Scales
from thinleaf.online.tables import Tables, contents


@dataclass(frozen=True, eq=False)
class Unrolled:
    """A tree whose leaves score their classes with shared regressors.

    Attributes
    ----------
    children : ndarray of shape (n_nodes, 2)
        Breadth-first; ``NO_CHILD`` twice for a leaf.
    router_at : ndarray of shape (n_nodes,)
        The row of ``routers`` with a router's weights; any for a leaf.
    bias : ndarray of shape (n_nodes,)
        Of routers; 0 for leaves. A row goes right if its score is at least 0.
    routers : CSR matrix of shape (n_models, n_features)
    classes, leaf_bias : list of ndarray
        Of each leaf; empty for routers.
    mass : ndarray of shape (n_nodes,)
        Estimated probability that the class of a leaf's row is none of the leaf's.
    regressors : CSR matrix of shape (n_classes, n_features)
    """

    children: IndexArray
    router_at: IndexArray
    bias: ParamArray
    routers: sp.csr_matrix
    classes: list[IndexArray]
    leaf_bias: list[ParamArray]
    mass: AccumArray
    regressors: sp.csr_matrix

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return int(self.regressors.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.regressors.shape[0])

    @property
    def n_nodes(self) -> int:
        """Number of routers and leaves."""
        return int(self.children.shape[0])

    @property
    def is_leaf(self) -> BoolArray:
        """Mask of the leaves."""
        mask: BoolArray = self.children[:, 0] == NO_CHILD
        return mask

    def classes_of(self, node: int) -> IndexArray:
        """Return the classes of a leaf, ascending."""
        return self.classes[node]

    def router(self, node: int) -> Router:
        """Return a router."""
        at = self.router_at[node]
        own = slice(*self.routers.indptr[at : at + 2])
        features = self.routers.indices[own].astype(INDEX)
        return Router(features, self.routers.data[own], float(self.bias[node]))

    def leaf(self, node: int) -> Leaf:
        """Return the softmax of a leaf."""
        classes = self.classes[node]
        weights = self.regressors[classes]
        features, column = np.unique(weights.indices, return_inverse=True)
        block = np.zeros((features.size, classes.size), dtype=PARAM)
        block[column, np.repeat(np.arange(classes.size), np.diff(weights.indptr))] = weights.data
        return Leaf(classes, features.astype(INDEX), block, self.leaf_bias[node])

    def with_classes(self, order: IndexArray) -> Unrolled:
        """Return the tree with class ``order[i]`` as class i."""
        new_id = np.empty(order.size, dtype=INDEX)
        new_id[order] = np.arange(order.size)
        sorters = [np.argsort(new_id[classes], kind="stable") for classes in self.classes]
        return replace(
            self,
            classes=[new_id[ids][by] for ids, by in zip(self.classes, sorters, strict=True)],
            leaf_bias=[bias[by] for bias, by in zip(self.leaf_bias, sorters, strict=True)],
            regressors=self.regressors[order],
        )

    def with_features(self, source: AnyArray) -> Unrolled:
        """Return the tree for rows whose feature i has the weights of feature ``source[i]``."""
        return replace(self, routers=self.routers[:, source], regressors=self.regressors[:, source])


def breadth_first(
    root: int, children_of: Callable[[int], tuple[int, int] | None]
) -> tuple[IndexArray, IndexArray]:
    """Return children in breadth-first order, and which node each of the nodes comes from.

    ``children_of`` gives a node's children, a negative one ``-1 - v`` being node v as a leaf; None
    if the node is a leaf itself.
    """
    children, source = [], [root]
    for node in source:  # which grows on the way
        below = children_of(node) if node >= 0 else None
        if below is None:
            children.append((NO_CHILD, NO_CHILD))
        else:
            children.append((len(source), len(source) + 1))
            source.extend(below)
    at = np.array(source, dtype=INDEX)
    return np.array(children, dtype=INDEX), np.where(at < 0, -1 - at, at).astype(INDEX)


def no_weights(n_models: int, n_features: int) -> sp.csr_matrix:
    """Return weights that are all zero."""
    empty = (np.empty(0, PARAM), np.empty(0, INDEX), np.zeros(n_models + 1, INDEX))
    return sp.csr_matrix(empty, shape=(n_models, n_features))


def plain_weights(models: Models, scales: Scales, n_models: int) -> sp.csr_matrix:
    """Return the weights of models for rows as they come, of shape (n_models, n_features)."""
    largest = scales.largest.astype(np.float64)
    factor = np.divide(1.0, largest, out=np.zeros_like(largest), where=largest > 0.0)
    if not isinstance(models.weights, Tables):
        return sp.csr_matrix((models.weights[:n_models, 0] * factor).astype(PARAM))
    held = contents(models.weights, largest.size)
    values = held.values[:, 0] * np.repeat(factor, np.diff(held.ptr))
    by_feature = sp.csc_matrix(
        (values.astype(PARAM), held.keys, held.ptr), shape=(n_models, largest.size)
    )
    return by_feature.tocsr()
