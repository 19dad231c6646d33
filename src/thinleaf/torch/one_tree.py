"""One tree in several processes: the first one assigns the labels, the others take its tree."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

from thinleaf._dtypes import INDEX
from thinleaf.labeltree.assign import Assignment, carried
from thinleaf.labeltree.label_tree import LabelTree
from thinleaf.labeltree.statistics import Statistics


def assigned_once(
    tree: LabelTree,
    assign: Callable[[], Assignment],
    statistics: Statistics,
    decay: float,
    group: dist.ProcessGroup | None,
) -> Assignment:
    """Return the first process's assignment, in every process of a group.

    Parameters
    ----------
    tree : LabelTree
    assign : callable
        Called in the first process alone.
    statistics : Statistics
        The same in all processes: what the new tree keeps of them follows.
    decay : float
        As of :func:`thinleaf.labeltree.assign.assign_labels`.
    group : ProcessGroup or None
    """
    first = dist.get_global_rank(group, 0) if group is not None else 0
    assignment = assign() if dist.get_rank(group) == 0 else None
    device = _device_of(group)
    size = torch.tensor([assignment.tree.n_nodes if assignment else 0], device=device)
    dist.broadcast(size, src=first, group=group)
    sent = torch.empty((int(size), tree.arity + 1), dtype=torch.int32, device=device)
    if assignment is not None:
        sent[:, :-1] = torch.from_numpy(assignment.tree.children)
        sent[:, -1] = torch.from_numpy(assignment.origin)
    dist.broadcast(sent, src=first, group=group)
    if assignment is not None:
        return assignment
    nodes = sent.cpu().numpy().astype(INDEX)
    new, origin = LabelTree.build(nodes[:, :-1], tree.n_labels), nodes[:, -1].copy()
    return Assignment(new, origin, carried(tree, new, origin, statistics, decay))


def _device_of(group: dist.ProcessGroup | None) -> torch.device:
    """Return where tensors that the processes send to each other must be."""
    on_gpu = dist.get_backend(group) == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")
