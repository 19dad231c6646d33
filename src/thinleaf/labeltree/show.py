"""A label tree as text: nodes with their most frequent labels (paper 004, figure 3, table 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thinleaf._dtypes import AnyArray
from thinleaf.labeltree.label_tree import LabelTree
from thinleaf.labeltree.statistics import NodeQuality


def tree_text(
    tree: LabelTree,
    names: Sequence[object],
    frequency: AnyArray,
    quality: NodeQuality | None = None,
    *,
    n_top: int = 4,
    max_depth: int = 2,
    max_children: int = 8,
) -> str:
    """Return the upper part of a tree, one line a node.

    Parameters
    ----------
    tree : LabelTree
    names : sequence of length n_labels
        What labels are called.
    frequency : array-like of shape (n_labels,)
    quality : NodeQuality, optional
        Figures to print beside each node.
    n_top : int
        How many labels to name at a node: the most frequent ones.
    max_depth, max_children : int
        How far to go down, and how many children of a node to show: those with the most examples.

    Returns
    -------
    text : str
    """
    order = np.argsort(-np.asarray(frequency), kind="stable")
    ptr, entries = tree.entries_by_node()
    owners = tree.entry_labels()[entries]
    rank = np.empty(tree.n_labels, dtype=np.int64)
    rank[order] = np.arange(tree.n_labels)

    def labels_of(node: int) -> AnyArray:
        if node >= tree.n_nodes:
            return np.array([node - tree.n_nodes])
        labels = owners[ptr[node] : ptr[node + 1]]
        return labels[np.argsort(rank[labels])]

    lines: list[str] = []
    waiting = [(0, 0, "root")] if tree.n_nodes else []
    while waiting:
        node, depth, name = waiting.pop()
        labels = labels_of(node)
        top = ", ".join(str(names[label]) for label in labels[:n_top])
        more = ", …" if labels.size > n_top else ""
        figures = ""
        if quality is not None and node < tree.n_nodes:
            figures = (
                f"  J {quality.J[node]:.3f} of {quality.J_max[node]:.3f}, "
                f"β {quality.balancedness[node]:.3f}, α {quality.purity[node]:.4f}"
            )
        count = f" ({labels.size} labels){figures}" if node < tree.n_nodes else ""
        lines.append(f"{'  ' * depth}{name}{count}: {top}{more}")
        if node >= tree.n_nodes or depth == max_depth:
            continue
        branches = np.flatnonzero(tree.present[node])
        weight = [-np.asarray(frequency)[labels_of(int(tree.children[node, j]))].sum()
                  for j in branches]  # fmt: skip
        shown = branches[np.argsort(weight, kind="stable")]
        if shown.size > max_children:
            hidden = shown.size - max_children
            lines[-1] += f"  [{hidden} more children]"
        waiting += [
            (int(tree.children[node, j]), depth + 1, f"{j}")
            for j in reversed(shown[:max_children].tolist())
        ]
    return "\n".join(lines)


def describe(
    tree: LabelTree,
    names: Sequence[object],
    frequency: AnyArray,
    quality: NodeQuality,
    *,
    n_top: int = 4,
    max_depth: int = 2,
    max_children: int = 8,
) -> tuple[dict[str, Any], str]:
    """Return all figures of a tree as plain values, and a text that sums them up and shows it.

    Parameters
    ----------
    tree, names, frequency, quality, n_top, max_depth, max_children
        As for :func:`tree_text`.

    Returns
    -------
    record : dict
        With a list of nodes, each with J, J_max, balancedness, purity, and the labels that are most
        frequent below it.
    text : str
    """
    order = np.argsort(-np.asarray(frequency), kind="stable")
    rank = np.empty(tree.n_labels, dtype=np.int64)
    rank[order] = np.arange(tree.n_labels)
    ptr, entries = tree.entries_by_node()
    owners = tree.entry_labels()[entries]
    nodes = []
    for n in range(tree.n_nodes):
        labels = owners[ptr[n] : ptr[n + 1]]
        top = labels[np.argsort(rank[labels])[:n_top]]
        figures = {name: _plain(array[n]) for name, array in quality._asdict().items()}
        nodes.append({"node": n, **figures, "labels": [names[label] for label in top]})
    record = {
        "classes": tree.n_labels,
        "arity": tree.arity,
        "depth": tree.depth,
        "mean_depth": tree.mean_depth(frequency) if np.any(frequency) else tree.mean_depth(),
        "nodes": nodes,
    }
    lines = [
        f"label tree: {tree.n_labels:,} labels, {tree.n_nodes:,} nodes of arity {tree.arity}, "
        f"depth {tree.depth}, {record['mean_depth']:.2f} on average",
        "",
        f"{'':24}{'mean':>9}{'by rows':>9}{'least':>9}{'most':>9}",
        *_ranges(quality),
        "",
        tree_text(tree, names, frequency, quality, n_top=n_top, max_depth=max_depth,
                  max_children=max_children),
    ]  # fmt: skip
    return record, "\n".join(lines)


def _ranges(quality: NodeQuality) -> list[str]:
    """Return a line for each figure: what it is over all nodes that examples reached."""
    reached = quality.n_examples > 0.0
    figures = {
        "J_n, share of its bound": quality.J / quality.J_max,
        "balancedness β": quality.balancedness,
        "purity α": quality.purity,
    }
    out = []
    for name, values in figures.items():
        at, rows = values[reached], quality.n_examples[reached]
        if at.size:
            found = (at.mean(), at @ rows / rows.sum(), at.min(), at.max())
            out.append(f"{name:24}" + "".join(f"{value:9.4f}" for value in found))
    return out


def _plain(value: Any) -> Any:
    """Return a Python number; None for NaN, which a node without examples has."""
    return None if value != value else value.item()
