"""The layer itself: routes a state to a leaf and scores the classes that this keeps.

Rows are the original layer's, so a kept logit is the network's own. Nothing here trains.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from thinleaf._dtypes import INDEX, PARAM, AnyArray, IndexArray, ParamArray
from thinleaf.arrays.checks import check_top_k
from thinleaf.arrays.ragged import offsets
from thinleaf.torch.heads import head_file
from thinleaf.torch.heads.exact import Bounds
from thinleaf.torch.heads.kernels.kept_rows import best_kept, fill_kept, fill_logits
from thinleaf.torch.heads.leaf_sets import LeafSets
from thinleaf.torch.heads.routers import Routers
from thinleaf.torch.heads.rows import RowKind, as_array, kind_of, packed, unpacked

_FEW = 16
"""States that a compiled loop takes one by one; more are grouped by leaf."""

_TREE = ("router_weight", "router_bias", "common", "set_ptr", "set_classes", "frequent")
_EXACT = ("centre", "rotation", "exact_rows", "exact_numbers")


class KeptLogits(NamedTuple):
    """Logits of kept classes alone; those of state i are at ``ptr[i]:ptr[i + 1]``."""

    ptr: Tensor
    classes: Tensor
    logits: Tensor


@dataclass
class ExactCounts:
    """What the exact mode did.

    Attributes
    ----------
    n_states : int
    n_certified : int
        No class but the leaf's best could win.
    n_rescored : int
        Classes that were scored since bounds did not rule them out.
    n_full : int
        States for which the full layer was asked: two logits were too close.
    n_read : int
        Weights of 8 bits that bounds looked at.
    """

    n_states: int = 0
    n_certified: int = 0
    n_rescored: int = 0
    n_full: int = 0
    n_read: int = 0


@dataclass(frozen=True)
class TrainedOn:
    """What is known from training, to compare texts with.

    Attributes
    ----------
    n_states : int
    agreement : float
        Share of held-out states whose best class is the full layer's.
    leaf_share : list of float
        Of training states at each leaf.
    outside : list of float
        The mean probability of the classes that a leaf does not keep.
    settings : dict
    """

    n_states: int
    agreement: float
    leaf_share: list[float]
    outside: list[float]
    settings: dict[str, Any] = field(default_factory=dict)


class TreeHead(nn.Module):
    """An output layer that scores the classes of one leaf.

    Made by :func:`replace_head`, or read by :meth:`load`.

    Parameters
    ----------
    weight : Parameter of shape (n_classes, in_features)
        Of the original layer, which it stays part of.
    bias : Parameter of shape (n_classes,), optional
    routers : Routers
    sets : LeafSets
    rows : {"float32", "float16", "bfloat16", "int8"}, optional
        What kept rows are stored as; by default as in the layer, without a copy.
    n_paths : int
        2: a state also gets the classes of the leaf that it reaches if the least sure router of its
        path errs.
    exact : bool
        Whether :meth:`predict` and :meth:`forward` have the full layer's best class, always.
    bounds : Bounds, optional
        What the exact mode needs.
    trained_on : TrainedOn, optional

    Attributes
    ----------
    exact_counts : ExactCounts
        What the exact mode did so far.
    """

    router_weight: Tensor
    router_bias: Tensor
    common: Tensor
    set_ptr: Tensor
    set_classes: Tensor
    frequent: Tensor
    rows: Tensor
    scale: Tensor
    centre: Tensor
    rotation: Tensor
    exact_rows: Tensor
    exact_numbers: Tensor

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        routers: Routers,
        sets: LeafSets,
        *,
        rows: RowKind | None = None,
        n_paths: int = 1,
        exact: bool = False,
        bounds: Bounds | None = None,
        trained_on: TrainedOn | None = None,
    ) -> None:
        super().__init__()
        if n_paths not in (1, 2):
            raise ValueError(f"n_paths must be 1 or 2, got {n_paths!r}")
        self.weight, self.bias = weight, bias
        self.out_features, self.in_features = weight.shape
        self.n_paths = n_paths if routers.n_leaves > 1 else 1
        device = weight.device
        for name, array in zip(
            _TREE,
            (routers.weights, routers.bias, *_arrays_of(sets)),
            strict=True,
        ):
            self.register_buffer(name, torch.from_numpy(np.array(array)).to(device))
        self._narrow = rows is not None and rows != kind_of(weight.data)
        narrow = packed(weight.data, rows) if rows and self._narrow else (torch.empty(0),) * 2
        self.register_buffer("rows", narrow[0].to(device), persistent=False)
        self.register_buffer("scale", narrow[1].to(device), persistent=False)
        self._steps, self._longest = np.zeros(3, dtype=INDEX), 0.0
        parts: tuple[Tensor, ...] = (torch.empty(0),) * 4
        if bounds is not None:
            self._steps, self._longest = bounds.steps, bounds.longest
            arrays = (bounds.centre, bounds.rotation, bounds.rows, bounds.numbers)
            parts = tuple(torch.from_numpy(array) for array in arrays)
        for name, part in zip(_EXACT, parts, strict=True):
            self.register_buffer(name, part, persistent=False)
        self.trained_on = trained_on
        self.exact_counts = ExactCounts()
        self._exact = False
        self.exact = exact

    # -- what it is --------------------------------------------------------------------------------

    @property
    def routers(self) -> Routers:
        """The hyperplanes."""
        return Routers(_array(self.router_weight), _array(self.router_bias))

    @property
    def sets(self) -> LeafSets:
        """The classes of leaves."""
        return LeafSets(*(_array(getattr(self, name)) for name in _TREE[2:]))

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.set_ptr.numel() - 1

    @property
    def row_kind(self) -> RowKind:
        """What kept rows are stored as."""
        return kind_of(self._rows)

    @property
    def exact(self) -> bool:
        """Whether answers have the full layer's best class, always."""
        return self._exact

    @exact.setter
    def exact(self, value: bool) -> None:
        if value and not self.rotation.numel():
            raise ValueError("this head has no bounds: make it with exact=True")
        self._exact = bool(value)

    @property
    def _rows(self) -> Tensor:
        return self.rows if self._narrow else self.weight

    def bytes_per_state(self, leaf: AnyArray | None = None) -> float:
        """Return the bytes of weights that are read for a state, in the mean over leaves given."""
        shares = None if leaf is None else np.bincount(leaf, minlength=self.n_leaves)
        kept = np.average(self.sets.sizes, weights=shares)
        a_row = self._rows.element_size() * self.in_features + 4 * bool(self.scale.numel())
        return float(kept * (a_row + 4) + 4 * self.routers.depth * (self.in_features + 1))

    def extra_repr(self) -> str:
        """Return what ``print`` shows."""
        sizes = self.sets.sizes
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"leaves={self.n_leaves}, classes a leaf={sizes.mean():.0f}, "
            f"common={self.common.numel()}, rows={self.row_kind}, exact={self.exact}"
        )

    # -- answers -----------------------------------------------------------------------------------

    def forward(self, input: Tensor) -> Tensor:
        """Return logits of shape (…, n_classes): the layer's own where kept, -inf elsewhere.

        In exact mode, classes that could have won are there, too, so that the largest logit is the
        full layer's.
        """
        states = self._states(input)
        few = len(states) <= _FEW and states.device.type == "cpu" and not self._needs_grad(input)
        logits = self._by_kernel(states) if few else self._by_leaf(states)
        if self.exact:
            self._put_winners(states, logits.detach())
        return logits.reshape(*input.shape[:-1], self.out_features).to(input.dtype)

    def predict(self, input: Tensor) -> Tensor:
        """Return the best class of each state, of shape (…)."""
        states = self._states(input)
        if self.exact:
            best = torch.tensor([self._winner(state)[0] for state in self._singles(states)])
        elif len(states) <= _FEW and states.device.type == "cpu":
            best = torch.from_numpy(self._best_kept(self._single(states))[0])
        else:
            best = self._by_leaf(states.detach()).argmax(dim=1)
        return best.long().reshape(input.shape[:-1]).to(input.device)

    def topk(self, input: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best kept classes of each state, and their logits; both are (…, k)."""
        check_top_k(k, self.out_features)
        found = self.forward(input).topk(int(k), dim=-1)
        return found.indices, found.values

    @torch.no_grad()
    def sparse(self, input: Tensor) -> KeptLogits:
        """Return the logits of kept classes alone, state by state.

        The classes of a state are ascending. In exact mode they are those of its leaves, too: the
        full layer's best class is promised by :meth:`forward` and :meth:`predict`.
        """
        states = self._states(input)
        leaves = self.leaves_of(input).reshape(len(states), self.n_paths).cpu().numpy()
        sets = self.sets
        lists = [np.unique(np.concatenate([sets.common, *map(sets.own, at)])) for at in leaves]
        ptr = offsets([part.size for part in lists])
        classes = np.concatenate([np.empty(0, INDEX), *lists]).astype(INDEX)
        logits = np.empty(classes.size, dtype=PARAM)
        if states.device.type == "cpu":
            fill_kept(self._single(states), ptr, classes, *self._arrays(), logits)
            values = torch.from_numpy(logits)
        else:
            parts = [
                self._scores(state[None], torch.from_numpy(part).to(state.device))[0]
                for state, part in zip(states, lists, strict=True)
            ]
            values = torch.cat(parts)
        device = input.device
        return KeptLogits(
            torch.from_numpy(ptr).to(device),
            torch.from_numpy(classes).long().to(device),
            values.to(device=device, dtype=input.dtype),
        )

    @torch.no_grad()
    def leaves_of(self, input: Tensor) -> Tensor:
        """Return the leaf of each state, of shape (…); with two paths, (…, 2)."""
        rows = self._single(self._states(input))
        first = self.routers.leaves_of(rows)
        shape = input.shape[:-1]
        if self.n_paths == 1:
            return torch.from_numpy(first).long().reshape(shape).to(input.device)
        both = np.stack([first, self.routers.other_leaves_of(rows)], axis=1)
        return torch.from_numpy(both).long().reshape(*shape, 2).to(input.device)

    # -- how they are made -------------------------------------------------------------------------

    def _states(self, input: Tensor) -> Tensor:
        if input.dim() < 1 or input.shape[-1] != self.in_features:
            raise ValueError(f"input must have shape (…, {self.in_features}), got {input.shape}")
        return input.reshape(-1, self.in_features)

    def _single(self, states: Tensor) -> ParamArray:
        return np.ascontiguousarray(states.detach().float().cpu().numpy())

    def _singles(self, states: Tensor) -> list[ParamArray]:
        return list(self._single(states))

    def _needs_grad(self, input: Tensor) -> bool:
        return torch.is_grad_enabled() and (input.requires_grad or self.weight.requires_grad)

    def _arrays(self) -> tuple[AnyArray, ParamArray, ParamArray]:
        """Return rows, scales and biases as kernels take them."""
        if self.bias is None:
            bias = np.empty(0, dtype=PARAM)
        else:
            bias = self.bias.detach().float().cpu().numpy()
        return as_array(self._rows), self.scale.numpy(), bias

    def _by_kernel(self, states: Tensor) -> Tensor:
        rows, sets, routers = self._single(states), self.sets, self.routers
        logits = torch.empty(len(rows), self.out_features)
        given = (sets.common, sets.ptr, sets.classes, *self._arrays())
        fill_logits(rows, routers.leaves_of(rows), *given, True, logits.numpy())
        if self.n_paths == 2:
            other = routers.other_leaves_of(rows)
            fill_logits(rows, other, *given, False, logits.numpy())
        return logits

    def _by_leaf(self, states: Tensor) -> Tensor:
        """Return logits by one matrix product a leaf, on any device and with gradients."""
        leaves = self.leaves_of(states).reshape(len(states), self.n_paths)
        own = self._scores(states, self.common)
        logits = own.new_full((len(states), self.out_features), -torch.inf)
        logits = logits.index_copy(1, self.common.long(), own)
        for path in leaves.T:
            for leaf in torch.unique(path).tolist():
                at = torch.nonzero(path == leaf)[:, 0]
                begin, end = self.set_ptr[leaf : leaf + 2].tolist()
                classes = self.set_classes[begin:end].long()
                part = self._scores(states[at], classes)
                logits = logits.index_put((at[:, None], classes[None, :]), part)
        return logits

    def _scores(self, states: Tensor, classes: Tensor) -> Tensor:
        rows = unpacked(self._rows, self.scale, classes.long())
        kind = torch.promote_types(states.dtype, rows.dtype)
        bias = None if self.bias is None else self.bias[classes.long()].to(kind)
        return nn.functional.linear(states.to(kind), rows.to(kind), bias).float()

    def _best_kept(self, rows: ParamArray) -> tuple[IndexArray, ParamArray]:
        sets, routers = self.sets, self.routers
        best = np.full(len(rows), self.out_features, dtype=INDEX)
        top = np.full(len(rows), -np.inf, dtype=PARAM)
        weights = self._arrays()
        given = (sets.ptr, sets.classes, *weights, best, top)
        best_kept(rows, routers.leaves_of(rows), sets.common, *given)
        if self.n_paths == 2:
            other = routers.other_leaves_of(rows)
            best_kept(rows, other, np.empty(0, dtype=INDEX), *given)
        return best, top

    # -- exact mode --------------------------------------------------------------------------------

    @property
    def bounds(self) -> Bounds:
        """What the exact mode certifies answers by."""
        centre, rotation, rows, numbers = (_array(getattr(self, name)) for name in _EXACT)
        return Bounds(centre, rotation, rows, numbers, self._steps, self._longest)

    @torch.no_grad()
    def _winner(self, state: ParamArray) -> tuple[int, float]:
        """Return the full layer's best class of a state, and its logit."""
        counts, bounds = self.exact_counts, self.bounds
        counts.n_states += 1
        original, scale, bias = as_array(self.weight.cpu()), np.empty(0, PARAM), self._arrays()[2]
        guess, _ = self._best_kept(state[None])
        logit = np.empty(1, dtype=PARAM)
        one = np.array([0, 1])
        fill_kept(state[None], one, guess, original, scale, bias, logit)
        close = bounds.rounding(state)
        close += 2.0 * torch.finfo(self.weight.dtype).eps * abs(float(logit[0]))
        others, n_read = bounds.survivors(state, float(logit[0]) - close, bias)
        counts.n_read += n_read
        others = others[others != guess[0]]
        if not others.size:
            counts.n_certified += 1
            return int(guess[0]), float(logit[0])
        counts.n_rescored += others.size
        found = np.empty(others.size, dtype=PARAM)
        fill_kept(state[None], np.array([0, others.size]), others, original, scale, bias, found)
        classes, logits = np.append(others, guess), np.append(found, logit)
        order = np.lexsort((classes, -logits))
        if logits[order[0]] - logits[order[1]] > close:
            return int(classes[order[0]]), float(logits[order[0]])
        counts.n_full += 1
        input = torch.from_numpy(state).to(self.weight)
        full = nn.functional.linear(input, self.weight, self.bias)
        best = int(full.argmax())
        return best, float(full[best])

    def _put_winners(self, states: Tensor, logits: Tensor) -> None:
        """Make sure that the full layer's best class has the largest logit."""
        for i, state in enumerate(self._singles(states)):
            best, value = self._winner(state)
            above = max(value, float(logits[i].max()))
            if int(logits[i].argmax()) != best:
                logits[i, best] = above
                ties = logits[i] >= above
                ties[best] = False
                logits[i, ties] = float(np.nextafter(np.float32(above), np.float32(-np.inf)))

    # -- files -------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write routers, sets and settings, without the layer's own weights.

        Parameters
        ----------
        path : path-like
            A file of that name is replaced.
        """
        head_file.write(self, Path(path))

    @classmethod
    def load(
        cls,
        path: str | Path,
        layer: nn.Linear,
        *,
        rows: RowKind | None = None,
    ) -> TreeHead:
        """Read a head for the layer that it was made for.

        Parameters
        ----------
        path : path-like
        layer : Linear
            The original layer, whose weights are used. ``ValueError`` if they are other ones.
        rows : {"float32", "float16", "bfloat16", "int8"}, optional
            By default, as when it was saved.
        """
        return head_file.read(cls, Path(path), layer, rows)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take the tree of a state, which may have other sizes."""
        for name in _TREE:
            stored = state_dict.get(prefix + name)
            if stored is not None and stored.shape != getattr(self, name).shape:
                setattr(self, name, torch.empty_like(stored, device=self.weight.device))
        super()._load_from_state_dict(state_dict, prefix, *rest)
        if self._narrow:
            self.rows, self.scale = packed(self.weight.data, self.row_kind)
        if self.n_leaves == 1:
            self.n_paths = 1


def _arrays_of(sets: LeafSets) -> tuple[AnyArray, ...]:
    return sets.common, sets.ptr, sets.classes, sets.frequent


def _array(tensor: Tensor) -> AnyArray:
    return tensor.detach().cpu().numpy()
