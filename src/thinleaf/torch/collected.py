"""What a layer collects in training for its next re-assignment: statistics as tensors.

They are no buffers of the module: nothing stores them, moves them to half precision, or sends those
of one process to the others. In wide trees, sums are kept of some children of each class at a node.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from thinleaf._dtypes import INDEX, BoolArray
from thinleaf.labeltree.label_tree import LabelTree
from thinleaf.labeltree.statistics import ALL_CHILDREN, Statistics

_ENTRIES = 65_536
"""How many path entries are merged at a time."""


class Collected:
    """Sums over the examples of a layer; see :class:`thinleaf.labeltree.statistics.Statistics`.

    Attributes
    ----------
    sum_probas, counts, label_sums, label_counts : Tensor
    top_children : Tensor of shape (n_entries, n_top), or None
        Which children sums are of; None if they are of all.
    met : Tensor of shape (n_labels,)
        Which labels have had an example since the last re-assignment.
    """

    def __init__(self, statistics: Statistics, arity: int, device: torch.device) -> None:
        self.arity = arity
        self.sum_probas = torch.from_numpy(statistics.sum_probas).to(device)
        self.counts = torch.from_numpy(statistics.counts).to(device)
        self.label_sums = torch.from_numpy(statistics.label_sums).to(device)
        self.label_counts = torch.from_numpy(statistics.label_counts).to(device)
        self.met = torch.zeros(self.label_counts.shape, dtype=torch.bool, device=device)
        self.top_children: Tensor | None = None
        if statistics.top_children.size:
            self.top_children = torch.from_numpy(statistics.top_children).to(device)

    @classmethod
    def none(cls, tree: LabelTree, dim: int, n_top: int | None, device: torch.device) -> Collected:
        """Return what is known without examples."""
        return cls(Statistics.zeros(tree, dim, n_top), tree.arity, device)

    def to(self, device: torch.device) -> None:
        """Move all to a device."""
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value.to(device))

    @torch.no_grad()
    def add(self, rows: Tensor, labels: Tensor, entry: Tensor, p: Tensor) -> None:
        """Add examples.

        Parameters
        ----------
        rows : Tensor of shape (n, dim)
        labels : Tensor of shape (n,)
        entry : Tensor of shape (n_visits,)
            Path entries: a label at a node of its path.
        p : Tensor of shape (n_visits, arity)
            The node's distribution over its children, for the row.
        """
        p = p.to(self.sum_probas)
        self.counts.index_add_(0, entry, torch.ones_like(self.counts[:1]).expand(entry.numel()))
        self.label_sums.index_add_(0, labels, rows.to(self.label_sums))
        ones = torch.ones_like(self.label_counts[:1]).expand(labels.numel())
        self.label_counts.index_add_(0, labels, ones)
        self.met[labels] = True
        if self.top_children is None:
            self.sum_probas.index_add_(0, entry, p)
        elif entry.numel():
            some, place = torch.unique(entry, return_inverse=True)
            sums = p.new_zeros(some.numel(), self.arity).index_add_(0, place, p)
            self._keep_top(some, sums, [(self.top_children[some], self.sum_probas[some])])

    def _keep_top(
        self, at: Tensor | slice, sums: Tensor, more: list[tuple[Tensor, Tensor]]
    ) -> None:
        """Keep the largest sums of some entries, once those of some children are added to all."""
        if self.top_children is None:
            return
        for children, values in more:
            sums.scatter_add_(1, children.long(), values)
        largest = sums.topk(self.top_children.shape[1], dim=1, sorted=False)
        self.sum_probas[at] = largest.values
        self.top_children[at] = largest.indices.to(self.top_children)

    def statistics(self) -> Statistics:
        """Return a copy as arrays."""
        top = ALL_CHILDREN
        if self.top_children is not None:
            top = self.top_children.cpu().numpy().astype(INDEX)
        return Statistics(
            self.sum_probas.cpu().numpy().copy(),
            self.counts.cpu().numpy().copy(),
            self.label_sums.cpu().numpy().copy(),
            self.label_counts.cpu().numpy().copy(),
            top,
        )

    def moved(self) -> BoolArray:
        """Return which labels have had an example since the last re-assignment."""
        moved: BoolArray = self.met.cpu().numpy().astype(np.bool_)
        return moved

    def reduce(self, group: dist.ProcessGroup | None) -> None:
        """Let each process of a group have the sums of all."""
        for value in (self.counts, self.label_sums, self.label_counts):
            dist.all_reduce(value, group=group)
        met = self.met.to(torch.uint8)
        dist.all_reduce(met, op=dist.ReduceOp.MAX, group=group)
        self.met = met.bool()
        if self.top_children is None:
            dist.all_reduce(self.sum_probas, group=group)
            return
        n_processes = dist.get_world_size(group)
        for begin in range(0, self.counts.numel(), _ENTRIES):
            part = slice(begin, begin + _ENTRIES)
            children, values = self.top_children[part], self.sum_probas[part]
            every_children = [torch.empty_like(children) for _ in range(n_processes)]
            every_values = [torch.empty_like(values) for _ in range(n_processes)]
            dist.all_gather(every_children, children.contiguous(), group=group)
            dist.all_gather(every_values, values.contiguous(), group=group)
            more = list(zip(every_children, every_values, strict=True))
            self._keep_top(part, values.new_zeros(values.shape[0], self.arity), more)

    def share(self, n_processes: int) -> None:
        """Divide sums by the number of processes: their next reduction counts them once."""
        for value in (self.sum_probas, self.counts, self.label_sums, self.label_counts):
            value /= n_processes
