"""A learned label tree as an output layer, in the place of ``nn.AdaptiveLogSoftmaxWithLoss``.

Parameters have a slot for every node that the tree may have. Re-assignment changes which node uses
which slot. A node that stays keeps its parameters, but for branches of classes that come to it: a
class takes along what it had at the leaf that it leaves. Optimizers keep their state for slots.
What is collected is in :mod:`thinleaf.torch.collected`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import numpy as np
import torch
import torch.distributed as dist
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from thinleaf._dtypes import INDEX, NO_CHILD, PARAM, IndexArray, ParamArray
from thinleaf.arrays.checks import check_top_k
from thinleaf.labeltree.assign import Assignment, Criterion, assign_labels, check_depth
from thinleaf.labeltree.fixed_trees import balanced, least_arity
from thinleaf.labeltree.kernels.search import topk_rows
from thinleaf.labeltree.label_tree import LabelTree
from thinleaf.labeltree.model import ABSENT, Moves
from thinleaf.labeltree.statistics import NodeQuality, node_quality
from thinleaf.torch.collected import Collected
from thinleaf.torch.groups import grouped_scores
from thinleaf.torch.one_tree import assigned_once
from thinleaf.torch.search import SlotTree, topk_on_device
from thinleaf.torch.slots import array, check_integer, checked, most_slots

_DERIVED = ("_absent", "_sizes", "_path_ptr", "_path_slots", "_path_branches")
"""What follows from the tree, as tensors on the device of the parameters."""


class LossAndOutput(NamedTuple):
    """What a forward pass returns, in the order of ``nn.AdaptiveLogSoftmaxWithLoss``."""

    output: Tensor
    """The log-probability of each target."""
    loss: Tensor
    """The mean negative log-likelihood."""


class LabelTreeSoftmax(nn.Module):
    """A tree over classes with a softmax at each node.

    Inputs have shape (n, in_features) or (in_features,), as for ``nn.AdaptiveLogSoftmaxWithLoss``,
    and are converted to the type of the parameters.

    Parameters
    ----------
    in_features : int
        Length of the input vectors.
    n_classes : int
    arity : int, optional
        M, the number of children of a node; more than there are classes in the tree are not made.
        By default, the least with which a tree of ``max_depth`` holds them all.
    max_depth : int or None
        The longest path (algorithm 3 of paper 004). None is no limit (algorithm 2); ``arity`` must
        then be given.
    tree : LabelTree, optional
        The tree to start from, such as a Huffman tree; its arity counts. By default, a random one.
    criterion : {"log_likelihood", "probability"}
        Equation 12 or 10.
    inertia : float
        By what factor another child must be better for a class to leave its own; 1 is the paper's.
    max_share : float or None
        A child that has this many times its fair share of the examples takes no further class while
        others have room. The paper has no such limit: frequent classes then gather below one child,
        and the others hardly meet examples, which plain SGD does not make up for.
    learned : bool
        Whether statistics for :meth:`update_tree` are collected in training.
    shortlist : int
        So many classes, the first ones, have an output each in a softmax of their own, beside one
        output for all others, which are below it in the tree. Classes should then be in the order
        of their frequency, as for ``nn.AdaptiveLogSoftmaxWithLoss``.
    sparse : bool
        Whether gradients of the tree's parameters are sparse tensors over the slots that a batch
        visits, for optimizers that take them: ``SGD`` without weight decay, ``Adagrad``,
        ``SparseAdam``. A step then costs what the batch visits, not what the layer holds.
    top_children : int or None
        Of how many children of a node the statistics of a class are kept, those that its examples
        are sent to most. None is all: memory is then that of the parameters times a path's length
        times the arity, over the length of inputs.
    seed : int
        Of the random tree.

    Notes
    -----
    In ``DistributedDataParallel`` there is one tree: :meth:`update_tree`, which every process must
    call, adds up what they have collected. It takes dense gradients there (``sparse=False``).

    Examples
    --------
    >>> import torch
    >>> from thinleaf.torch import LabelTreeSoftmax
    >>> layer = LabelTreeSoftmax(8, 100)
    >>> output, loss = layer(torch.randn(5, 8), torch.tensor([3, 1, 4, 1, 5]))
    >>> loss.backward()
    >>> layer.update_tree()
    >>> layer.log_prob(torch.randn(5, 8)).shape
    torch.Size([5, 100])
    """

    tree_children: Tensor
    slots: Tensor
    collected: Collected
    """What :meth:`update_tree` takes into account."""
    _absent: Tensor
    _sizes: Tensor
    _path_ptr: Tensor
    _path_slots: Tensor
    _path_branches: Tensor

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        arity: int | None = None,
        max_depth: int | None = 2,
        *,
        tree: LabelTree | None = None,
        criterion: Criterion = "log_likelihood",
        inertia: float = 2.0,
        max_share: float | None = 1.5,
        learned: bool = True,
        shortlist: int = 0,
        sparse: bool = False,
        top_children: int | None = 16,
        seed: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_integer("in_features", in_features, 1)
        check_integer("n_classes", n_classes, 2)
        check_integer("shortlist", shortlist, 0)
        n_in_tree = n_classes - shortlist
        if n_in_tree < 2:
            raise ValueError(
                f"shortlist must leave two classes or more to the tree: {shortlist} of {n_classes}"
            )
        check_integer("arity", arity, 2, optional=True)
        check_integer("max_depth", max_depth, 1, optional=True)
        check_integer("top_children", top_children, 1, optional=True)
        if criterion not in get_args(Criterion):
            raise ValueError(f"criterion must be one of {get_args(Criterion)}, got {criterion!r}")
        if not 1.0 <= inertia < np.inf:
            raise ValueError(f"inertia must be at least 1, got {inertia}")
        if max_share is not None and not max_share > 0.0:
            raise ValueError(f"max_share must be above 0, or None, got {max_share}")
        if tree is not None:
            arity = tree.arity
        elif arity is not None:
            arity = min(arity, n_in_tree)
        elif max_depth is not None:
            arity = least_arity(n_in_tree, max_depth)
        else:
            raise ValueError("give arity or max_depth")
        if learned:
            check_depth(n_in_tree, arity, max_depth)
        tree = tree or balanced(n_in_tree, arity, np.random.default_rng(seed))
        if tree.n_labels != n_in_tree:
            beyond = f" beyond the first {shortlist}" if shortlist else ""
            raise ValueError(
                f"tree has {tree.n_labels} labels, but there are {n_in_tree} classes{beyond}"
            )
        self.in_features, self.n_classes, self.shortlist = in_features, n_classes, shortlist
        self.max_depth, self.criterion, self.learned = max_depth, criterion, learned
        self.inertia, self.max_share = inertia, max_share
        self.sparse, self.top_children = sparse, top_children
        n_slots = most_slots(n_in_tree, arity, max_depth, tree.n_nodes if not learned else 0)
        n_slots = max(n_slots, tree.n_nodes)
        options = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(n_slots, arity, in_features, **options))
        self.bias = nn.Parameter(torch.empty(n_slots, arity, **options))
        self.head = nn.Linear(in_features, shortlist + 1, **options) if shortlist else None
        empty = torch.full((n_slots, arity), NO_CHILD, dtype=torch.int32, device=device)
        self.register_buffer("tree_children", empty)
        self.register_buffer("slots", torch.full((n_slots,), -1, device=device))
        self._set_tree(tree, np.arange(tree.n_nodes, dtype=INDEX))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make all parameters zero, as they are at first, and forget what was collected.

        The tree stays.
        """
        for parameter in self.parameters():
            nn.init.zeros_(parameter)
        self._forget()

    # -- as nn.AdaptiveLogSoftmaxWithLoss ----------------------------------------------------------

    def forward(self, input: Tensor, target: Tensor) -> LossAndOutput:
        """Return the log-probability of each target and the mean loss.

        Parameters
        ----------
        input : Tensor of shape (n, in_features) or (in_features,)
        target : Tensor of shape (n,) or ()
        """
        rows, labels = self._rows(input), target.reshape(-1)
        if labels.numel() != rows.shape[0]:
            raise ValueError(f"{rows.shape[0]} inputs, but {labels.numel()} targets")
        if target.shape != input.shape[:-1]:
            wanted, got = tuple(input.shape[:-1]), tuple(target.shape)
            raise ValueError(f"target must have shape {wanted}, got {got}")
        if labels.numel() and not 0 <= int(labels.min()) <= int(labels.max()) < self.n_classes:
            raise ValueError(f"targets must be in 0..{self.n_classes - 1}")
        if self.head is None:
            output = self._along_paths(rows, labels)
        else:
            head = self._head_log_prob(self.head, rows)
            output = head.gather(1, labels.clamp(max=self.shortlist)[:, None])[:, 0]
            at = torch.nonzero(labels >= self.shortlist)[:, 0]
            below = self._along_paths(rows[at], labels[at] - self.shortlist)
            output = output.index_add(0, at, below)
        return LossAndOutput(output.reshape(target.shape), -output.mean())

    def _along_paths(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Return the log-probability of a label of the tree for each row, given it is there."""
        sizes = self._sizes[labels]
        owner = torch.repeat_interleave(torch.arange(labels.numel(), device=rows.device), sizes)
        within = torch.arange(owner.numel(), device=rows.device)
        within = within - torch.repeat_interleave(torch.cumsum(sizes, 0) - sizes, sizes)
        entry = self._path_ptr[labels][owner] + within
        slot = self._path_slots[entry]
        order = torch.argsort(slot, stable=True)
        owner, entry, slot = owner[order], entry[order], slot[order]
        scores = grouped_scores(rows[owner], self.weight, self.bias, slot, sparse=self.sparse)
        logp = torch.log_softmax(scores.masked_fill(self._absent[slot], -torch.inf), dim=1)
        chosen = logp.gather(1, self._path_branches[entry][:, None])[:, 0]
        output = chosen.new_zeros(rows.shape[0]).index_add(0, owner, chosen)
        if self.training and self.learned:
            self.collected.add(rows, labels, entry, logp.detach().exp())
        return output

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probability of every class, of shape (n, n_classes) or (n_classes,)."""
        n_slots, arity, dim = self.weight.shape
        rows = self._rows(input)
        scores = rows @ self.weight.reshape(n_slots * arity, dim).T + self.bias.reshape(-1)
        scores = scores.reshape(-1, n_slots, arity).masked_fill(self._absent, -torch.inf)
        logp = torch.log_softmax(scores, dim=2).reshape(-1, n_slots * arity)
        steps = logp[:, self._path_slots * arity + self._path_branches]
        labels = torch.repeat_interleave(
            torch.arange(self._tree.n_labels, device=input.device), self._sizes
        )
        out = torch.zeros(rows.shape[0], self._tree.n_labels, device=logp.device, dtype=logp.dtype)
        out = out.index_add(1, labels, steps)
        if self.head is not None:
            head = self._head_log_prob(self.head, rows)
            out = torch.cat([head[:, : self.shortlist], head[:, self.shortlist :] + out], dim=1)
        return out.reshape(*input.shape[:-1], self.n_classes)

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of each input, by branch and bound."""
        return self.topk(input, 1)[0][..., 0]

    def topk(self, input: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k most probable classes, best first, and their log-probabilities.

        Both have shape (n, k) or (k,). The search is in single precision, compiled on a CPU and by
        levels elsewhere: nothing leaves the device.
        """
        check_top_k(k, self.n_classes)
        rows, k = self._rows(input), int(k)
        if self.head is None:
            labels, scores = self._search(rows, k)
        else:
            labels, scores = self._search_below(self.head, rows, k)
        shape = (*input.shape[:-1], k)
        return labels.reshape(shape), scores.to(self.weight.dtype).reshape(shape)

    @torch.no_grad()
    def _search_below(self, head: nn.Linear, rows: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best classes of each row; the tree is searched where some may be below."""
        with torch.autocast(rows.device.type, enabled=False):
            single = [part.float() for part in (rows, head.weight, head.bias)]
            logp = torch.log_softmax(nn.functional.linear(*single), dim=1)
        others = logp[:, self.shortlist]
        scores, labels = logp[:, : self.shortlist].topk(min(k, self.shortlist))
        decided = (others < scores[:, -1]) & (k <= self.shortlist)
        at = torch.nonzero(~decided)[:, 0]
        n_below = min(k, self._tree.n_labels)
        more = scores.new_full((rows.shape[0], n_below), -torch.inf)
        which = labels.new_zeros(more.shape)
        found, logp_below = self._search(rows[at], n_below)
        more[at], which[at] = others[at, None] + logp_below, found + self.shortlist
        scores, order = torch.cat([scores, more], dim=1).topk(k)
        return torch.cat([labels, which], dim=1).gather(1, order), scores

    def _search(self, rows: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k most probable labels of the tree, and their log-probabilities there."""
        if rows.device.type != "cpu":
            return self._search_by_levels(rows, k)
        R = np.ascontiguousarray(array(rows), dtype=PARAM)
        labels, scores = np.empty((len(R), k), dtype=INDEX), np.empty((len(R), k), dtype=PARAM)
        weights, bias = self._arrays()
        children, depth = self._slot_children, self._tree.depth
        topk_rows(R, 1.0, None, weights, bias, children, depth, labels, scores)
        found = torch.from_numpy(labels).long(), torch.from_numpy(scores)
        return found[0].to(rows.device), found[1].to(rows.device)

    def _search_by_levels(self, rows: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Do the same on the device of the parameters."""
        with torch.autocast(rows.device.type, enabled=False):
            weight = self.weight.detach().float()
            bias = self.bias.detach().float().masked_fill(self._absent, -torch.inf)
            children = torch.from_numpy(self._slot_children).to(rows.device)
            tree = SlotTree(weight, bias, children, self._tree.n_labels)
            return topk_on_device(rows.detach().float(), tree, k)

    @staticmethod
    def _head_log_prob(head: nn.Linear, rows: Tensor) -> Tensor:
        """Return the log-probability of each class on the shortlist, and of all others together."""
        return torch.log_softmax(head(rows).to(rows.dtype), dim=1)

    def _rows(self, input: Tensor) -> Tensor:
        """Return an input as rows of the type of the parameters, once its shape is checked."""
        if input.dim() not in (1, 2) or input.shape[-1] != self.in_features:
            wanted = f"(n, {self.in_features}) or ({self.in_features},)"
            raise ValueError(f"input must have shape {wanted}, got {tuple(input.shape)}")
        return input.reshape(-1, self.in_features).to(self.weight.dtype)

    # -- the tree ----------------------------------------------------------------------------------

    @property
    def tree(self) -> LabelTree:
        """The tree as it is now; its label 0 is the first class that is not on the shortlist."""
        return self._tree

    @torch.no_grad()
    def update_tree(
        self, decay: float = 0.8, *, process_group: dist.ProcessGroup | None = None
    ) -> None:
        """Re-assign the classes, given what was collected (AssignLabels, algorithm 2 or 3).

        Classes of which there was no example stay where they are, as far as others leave room. So
        do those of a node to whose classes nothing happened since the last time. If there was no
        example of any class, the tree stays: so it does after a state has been loaded, which does
        not have what was collected.

        Parameters
        ----------
        decay : float
            What the sums of inputs count from now on.
        process_group : ProcessGroup, optional
            Whose processes have one tree; each of them must call this. By default all, if
            ``torch.distributed`` is initialized.
        """
        if not self.learned:
            raise RuntimeError("the tree of a layer with learned=False cannot be updated")
        n_processes = 1
        if dist.is_available() and dist.is_initialized():
            n_processes = dist.get_world_size(process_group)
        if n_processes > 1:
            self.collected.reduce(process_group)
        if not bool(self.collected.met.any()):
            self.collected.share(n_processes)
            return
        slots = self.slots[: self._tree.n_nodes].cpu().numpy()
        if n_processes > 1:
            before = self.collected.statistics()
            tree, origin, statistics = assigned_once(
                self._tree, lambda: self._assigned(slots, decay), before, decay, process_group
            )
        else:
            tree, origin, statistics = self._assigned(slots, decay)
        kept = np.where(origin >= 0, slots[origin], -1).astype(INDEX)
        free = np.setdiff1d(np.arange(self.weight.shape[0]), kept)
        new = kept < 0
        kept[new] = free[: np.count_nonzero(new)]
        moves = Moves.of(self._tree, tree, origin)
        at = torch.from_numpy(kept).long().to(self.weight.device)
        for parameter in (self.weight, self.bias):
            old = array(parameter)[slots]
            values = np.zeros((tree.n_nodes, *old.shape[1:]), dtype=old.dtype)
            values[~new] = old[origin[~new]]
            moves.carry(old, values, self._tree.present)
            parameter[at] = torch.from_numpy(values).to(parameter)
        self._set_tree(tree, kept)
        self.collected = Collected(statistics, tree.arity, self.weight.device)
        self.collected.share(n_processes)

    def _assigned(self, slots: IndexArray, decay: float) -> Assignment:
        """Return the tree that follows from what was collected."""
        weights, bias = self._arrays()
        with threadpool_limits(limits=1):  # many small products
            return assign_labels(
                self._tree,
                self.collected.statistics(),
                weights[slots],
                bias[slots],
                criterion=self.criterion,
                max_depth=self.max_depth,
                decay=decay,
                inertia=self.inertia,
                max_share=self.max_share,
                moved=self.collected.moved(),
            )

    def inspect(self) -> NodeQuality:
        """Return J_n, β and α of every node (paper 004, section 5), from what was collected."""
        return node_quality(self._tree, self.collected.statistics())

    def extra_repr(self) -> str:
        """Return what ``print`` shows."""
        shortlist = f", shortlist={self.shortlist}" if self.shortlist else ""
        return (
            f"{self.in_features}, {self.n_classes}, arity={self._tree.arity}, "
            f"max_depth={self.max_depth}, depth={self._tree.depth}{shortlist}"
        )

    def _arrays(self) -> tuple[ParamArray, ParamArray]:
        """Return the parameters as kernels take them."""
        weights = array(self.weight).astype(PARAM, copy=False)
        bias = self.bias.detach().float().masked_fill(self._absent, float(ABSENT))
        return weights, bias.cpu().numpy()

    def _set_tree(self, tree: LabelTree, slots: IndexArray) -> None:
        """Use a tree whose node n has its parameters in slot ``slots[n]``."""
        n_slots = self.weight.shape[0]
        device = self.weight.device
        self._tree = tree
        children = np.full((n_slots, tree.arity), NO_CHILD, dtype=INDEX)
        children[: tree.n_nodes] = tree.children
        self.tree_children.copy_(torch.from_numpy(children))
        self.slots.fill_(-1)
        self.slots[: tree.n_nodes] = torch.from_numpy(slots).to(self.slots)
        number = np.concatenate([slots, n_slots + np.arange(tree.n_labels), [NO_CHILD]])
        self._slot_children = np.full((n_slots, tree.arity), NO_CHILD, dtype=INDEX)
        self._slot_children[slots] = number[tree.children].astype(INDEX)
        absent = torch.from_numpy(self._slot_children == NO_CHILD)
        absent[absent.all(dim=1)] = False  # slots that are not used
        derived = {  # no buffers: processes need not send them to each other
            "_absent": absent,
            "_sizes": torch.from_numpy(tree.depths).long(),
            "_path_ptr": torch.from_numpy(tree.path_ptr),
            "_path_slots": torch.from_numpy(slots[tree.path_nodes]).long(),
            "_path_branches": torch.from_numpy(tree.path_branches).long(),
        }
        for name, value in derived.items():
            setattr(self, name, value.to(device))

    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
        """Check the tree of a state before anything is taken, and make what follows from it."""
        children, slots = (state.get(prefix + name) for name in ("tree_children", "slots"))
        head = state.get(prefix + "head.weight")
        n_first = 0 if head is None else head.shape[0] - 1
        if children is not None and n_first != self.shortlist:
            raise ValueError(
                f"the state has a shortlist of {n_first} classes, the layer one of {self.shortlist}"
            )
        if children is not None and children.shape == self.tree_children.shape:
            checked(children, self.slots if slots is None else slots, self._tree.n_labels)
        super()._load_from_state_dict(state, prefix, *rest)
        tree, slots = checked(self.tree_children, self.slots, self._tree.n_labels)
        self._set_tree(tree, slots)
        self._forget()

    # -- statistics --------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Forget what was collected."""
        top, device = self.top_children, self.weight.device
        self.collected = Collected.none(self._tree, self.in_features, top, device)

    def _apply(self, fn: Any, recurse: bool = True) -> LabelTreeSoftmax:
        """Move all, but leave statistics in single precision: counts end early in half of it."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        device = self.weight.device
        if device != self._absent.device:
            self.collected.to(device)
            for name in _DERIVED:
                setattr(self, name, getattr(self, name).to(device))
        return self
