"""The layer itself: routes a state to a leaf and scores the classes that this keeps.

Rows are the original layer's, so a kept logit is the network's own. Nothing here trains.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from thinleaf._dtypes import INDEX, PARAM, AnyArray, IndexArray, ParamArray
from thinleaf.arrays.checks import check_top_k
from thinleaf.arrays.ragged import offsets
from thinleaf.torch.heads import head_file
from thinleaf.torch.heads.byte_rows import ByteRows
from thinleaf.torch.heads.exact import ExactCounts, Rounding, winner
from thinleaf.torch.heads.kernels.byte_rows import score_bytes
from thinleaf.torch.heads.kernels.kept_rows import best_of, scatter, score_kept
from thinleaf.torch.heads.leaf_sets import LeafSets
from thinleaf.torch.heads.on_device import leaves_on_device
from thinleaf.torch.heads.routers import Routers
from thinleaf.torch.heads.rows import RowKind, as_array, kind_of, narrowed

_FEW = 16
"""States that a compiled loop takes one by one; more are grouped by leaf."""

_TREE = ("router_weight", "router_bias", "common", "set_ptr", "set_classes", "frequent")
_BYTES = tuple(f"byte_{name}" for name in ByteRows._fields)
_SINGLE = ("router_weight", "router_bias", *_BYTES[1:])
"""Buffers that are single precision, whatever the layer's weights are."""


_Version: TypeAlias = tuple[int, torch.dtype, int]


class KeptLogits(NamedTuple):
    """Logits of kept classes alone; those of state i are at ``ptr[i]:ptr[i + 1]``."""

    ptr: Tensor
    classes: Tensor
    logits: Tensor


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
    byte_rows: Tensor
    byte_scale: Tensor
    byte_error: Tensor
    byte_centre: Tensor
    byte_norms: Tensor

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
        self._kind: RowKind = rows or kind_of(weight.data)
        narrow = torch.empty(0, device=device)
        if self._kind not in ("int8", kind_of(weight.data)):
            narrow = narrowed(weight.data, self._kind)
        self.register_buffer("rows", narrow, persistent=False)
        for name in _BYTES:
            self.register_buffer(name, torch.empty(0, device=device), persistent=False)
        self._given: _Given | None = None
        self._made_of: _Version | None = _version_of(weight)
        if self._kind == "int8":
            self._read_bytes()
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
        return self._kind

    @property
    def exact(self) -> bool:
        """Whether answers have the full layer's best class, always."""
        return self._exact

    @exact.setter
    def exact(self, value: bool) -> None:
        if value and not self.byte_rows.numel():
            self._read_bytes()
        self._exact = bool(value)

    def _read_bytes(self) -> None:
        """Make rows of 8 bits from the layer's weights."""
        for name, tensor in zip(_BYTES, ByteRows.of(self.weight.data), strict=True):
            setattr(self, name, tensor)
        self._given = None

    def _refresh(self) -> None:
        """Make narrow rows again if the layer's weights have changed."""
        version = _version_of(self.weight)
        if version == self._made_of:
            return
        self._made_of, self._given = version, None
        if self.rows.numel():
            self.rows = narrowed(self.weight.data, self._kind)
        if self.byte_rows.numel():
            self._read_bytes()

    @property
    def _bytes(self) -> ByteRows:
        return ByteRows(*(getattr(self, name) for name in _BYTES))

    @property
    def _rows(self) -> Tensor:
        return self.rows if self.rows.numel() else self.weight

    def bytes_per_state(self, leaf: AnyArray | None = None) -> float:
        """Return the bytes of weights that are read for a state, in the mean over leaves given."""
        shares = None if leaf is None else np.bincount(leaf, minlength=self.n_leaves)
        kept = np.average(self.sets.sizes, weights=shares)
        a_row = self._rows.element_size() * self.in_features
        if self._kind == "int8":
            a_row = self.in_features + 8
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
        by_kernel = self._by_kernel_best(states) and not self._needs_grad(input)
        logits = self._by_kernel(states) if by_kernel else self._by_leaf(states)
        logits = logits.to(input.dtype)
        if self.exact:
            self._put_winners(states, logits.detach())
        return logits.reshape(*input.shape[:-1], self.out_features)

    def predict(self, input: Tensor) -> Tensor:
        """Return the best class of each state, of shape (…)."""
        states = self._states(input)
        if self.exact:
            winners = [self._winner(state)[0] for state in self._single(states)]
            best = torch.from_numpy(np.array(winners, dtype=np.int64))
        elif self._by_kernel_best(states):
            kept = [best_of(*self._kept(state)) for state in self._single(states)]
            best = torch.from_numpy(np.array(kept, dtype=np.int64))
        else:
            best = self._by_leaf(states.detach()).argmax(dim=1)
        return best.reshape(input.shape[:-1]).to(input.device)

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
        states = self._states(input).detach()
        lists: list[tuple[AnyArray, AnyArray]] = []
        if states.device.type == "cpu":
            for state in self._single(states):
                classes, logits = self._kept(state)
                kept, place = np.unique(classes, return_index=True)
                lists.append((kept, logits[place]))
        else:
            for row in self._by_leaf(states).cpu().numpy():
                at = np.flatnonzero(row > -np.inf).astype(INDEX)
                lists.append((at, row[at]))
        ptr = offsets([kept.size for kept, _ in lists])
        device = input.device
        return KeptLogits(
            torch.from_numpy(ptr).to(device),
            torch.from_numpy(np.concatenate([np.empty(0, INDEX), *(a for a, _ in lists)]))
            .long()
            .to(device),
            torch.from_numpy(np.concatenate([np.empty(0, PARAM), *(b for _, b in lists)])).to(
                device=device, dtype=input.dtype
            ),
        )

    @torch.no_grad()
    def leaves_of(self, input: Tensor) -> Tensor:
        """Return the leaf of each state, of shape (…); with two paths, (…, 2)."""
        states, shape = self._states(input), input.shape[:-1]
        if states.device.type != "cpu" and states.device == self.router_weight.device:
            tree = self.router_weight, self.router_bias
            leaves = leaves_on_device(states, *tree, self.n_paths)
            return leaves.reshape(*shape, 2) if self.n_paths == 2 else leaves.reshape(shape)
        rows = self._single(states)
        first = self.routers.leaves_of(rows)
        if self.n_paths == 1:
            return torch.from_numpy(first).long().reshape(shape).to(input.device)
        both = np.stack([first, self.routers.other_leaves_of(rows)], axis=1)
        return torch.from_numpy(both).long().reshape(*shape, 2).to(input.device)

    # -- how they are made -------------------------------------------------------------------------

    def _states(self, input: Tensor) -> Tensor:
        if input.dim() < 1 or input.shape[-1] != self.in_features:
            raise ValueError(f"input must have shape (…, {self.in_features}), got {input.shape}")
        if not input.dtype.is_floating_point:
            raise TypeError(f"input must be of a floating-point type, is of {input.dtype}")
        return input.reshape(-1, self.in_features)

    def _single(self, states: Tensor) -> ParamArray:
        return np.ascontiguousarray(states.detach().float().cpu().numpy())

    def _by_kernel_best(self, states: Tensor) -> bool:
        """Return whether compiled loops are as quick as products of matrices, or quicker."""
        few = len(states) <= _FEW or self._kind == "int8"
        return few and states.device.type == self.weight.device.type == "cpu"

    def _needs_grad(self, input: Tensor) -> bool:
        return torch.is_grad_enabled() and (input.requires_grad or self.weight.requires_grad)

    def _arrays(self) -> _Given:
        """Return what kernels take, as arrays that share the memory of tensors."""
        weight, bias = self.weight, self.bias
        of_bias = None if bias is None else _version_of(bias)
        place = (_version_of(weight), of_bias, self.n_paths)
        if self._given is None or self._given.place != place:
            self._refresh()
            sets, routers = self.sets, self.routers
            classes = (sets.common, sets.ptr, sets.classes)
            tree = (routers.weights, routers.bias, self.n_paths, *classes)
            most = sets.common.size + self.n_paths * int(np.diff(sets.ptr).max())
            own = as_array(self.weight.cpu())
            added = np.empty(0, PARAM) if self.bias is None else _array(self.bias.float())
            rows: tuple[AnyArray, ...] = ()
            if self.byte_rows.numel():
                rows = tuple(_array(tensor) for tensor in self._bytes)
            kept = (*rows, own, added)
            if self._kind != "int8":
                kept = (as_array(self._rows.cpu()), added)
            self._given = _Given(place, most, (*tree, *kept), rows, own, added)
        return self._given

    def _kept(self, state: ParamArray) -> tuple[IndexArray, ParamArray]:
        """Return the classes that a state keeps, and their logits."""
        given = self._arrays()
        kept, scores = np.empty(given.most, INDEX), np.empty(given.most, PARAM)
        score: Any = score_bytes if self._kind == "int8" else score_kept
        n = score(state, *given.kept, kept, scores)
        return kept[:n], scores[:n]

    def _by_kernel(self, states: Tensor) -> Tensor:
        logits = torch.empty(len(states), self.out_features)
        for state, row in zip(self._single(states), logits.numpy(), strict=True):
            scatter(*self._kept(state), row)
        return logits

    def _by_leaf(self, states: Tensor) -> Tensor:
        """Return logits by one matrix product a leaf, on any device and with gradients."""
        self._refresh()
        leaves = self.leaves_of(states).reshape(len(states), self.n_paths)
        own = self._scores(states, self.common)
        logits = own.new_full((len(states), self.out_features), -torch.inf)
        logits.index_copy_(1, self.common.long(), own)
        for path in leaves.T:
            for leaf in torch.unique(path).tolist():
                at = torch.nonzero(path == leaf)[:, 0]
                begin, end = self.set_ptr[leaf : leaf + 2].tolist()
                classes = self.set_classes[begin:end].long()
                part = self._scores(states[at], classes)
                logits.index_put_((at[:, None], classes[None, :]), part)
        return self._best_again(states, logits) if self._kind == "int8" else logits

    def _scores(self, states: Tensor, classes: Tensor) -> Tensor:
        at = classes.long()
        rows = self._bytes.unpacked(at) if self._kind == "int8" else self._rows[at]
        kind = torch.promote_types(states.dtype, rows.dtype)
        bias = None if self.bias is None else self.bias[at].to(kind)
        return nn.functional.linear(states.to(kind), rows.to(kind), bias).float()

    def _best_again(self, states: Tensor, logits: Tensor) -> Tensor:
        """Score classes that may be the best ones by the layer's own rows."""
        off = self.byte_error * states.detach().float().norm(dim=1, keepdim=True)
        least = (logits.detach() - off).amax(dim=1, keepdim=True)
        at, classes = torch.nonzero(logits.detach() + off >= least, as_tuple=True)
        scores = (states[at].float() * self.weight[classes].float()).sum(dim=1)
        if self.bias is not None:
            scores = scores + self.bias[classes].float()
        return logits.index_put((at, classes), scores)

    # -- exact mode --------------------------------------------------------------------------------

    @torch.no_grad()
    def _winner(self, state: ParamArray) -> tuple[int, float]:
        """Return the full layer's best class of a state, and its logit."""
        given = self._arrays()

        def ask() -> tuple[int, float]:
            input = torch.from_numpy(state).to(self.weight)
            full = nn.functional.linear(input, self.weight, self.bias)
            best = int(full.argmax())
            return best, float(full[best])

        limits = torch.finfo(self.weight.dtype)
        unit = 0.0 if self.weight.dtype == torch.float32 else limits.eps
        rounding = Rounding(unit, limits.tiny * limits.eps, limits.max)
        guess = int(best_of(*self._kept(state)))
        known = (given.rows, given.own, given.bias)
        n_threads = torch.get_num_threads()
        return winner(state, guess, *known, rounding, ask, self.exact_counts, n_threads)

    @torch.no_grad()
    def _put_winners(self, states: Tensor, logits: Tensor) -> None:
        """Make sure that the full layer's best class has the largest logit, in their precision."""
        limits = torch.finfo(logits.dtype)
        for state, row in zip(self._single(states), logits, strict=True):
            best, value = self._winner(state)
            first = int(row.argmax())
            if first != best:
                above = torch.maximum(row[first], torch.full_like(row[first], value))
                finite = above.clamp(max=limits.max)
                a_step = (finite.abs() * limits.eps).clamp(min=limits.tiny)
                row[row >= above] = finite - a_step
                row[best] = above

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
        self._made_of = self._given = None
        if self.n_leaves == 1:
            self.n_paths = 1

    def _apply(self, fn: Any, recurse: bool = True) -> TreeHead:
        """Move or convert tensors, but leave routers and bounds in single precision.

        What follows from the layer's weights is made of them again.
        """
        single = {name: getattr(self, name) for name in _SINGLE}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, tensor in single.items():
            setattr(self, name, tensor.to(self.weight.device))
        if not self.rows.numel() and self._kind != "int8":
            self._kind = kind_of(self.weight.data)
        self._made_of = self._given = None
        return self


def _version_of(weight: Tensor) -> _Version:
    """Return what changes whenever weights are written to, or others take their place."""
    n_writes = 0 if weight.is_inference() else weight._version
    return weight.data_ptr(), weight.dtype, n_writes


class _Given(NamedTuple):
    """What kernels take, and where the layer's weights were then."""

    place: tuple[Any, ...]
    most: int
    kept: tuple[Any, ...]
    rows: tuple[Any, ...]
    own: AnyArray
    bias: ParamArray


def _arrays_of(sets: LeafSets) -> tuple[AnyArray, ...]:
    return sets.common, sets.ptr, sets.classes, sets.frequent


def _array(tensor: Tensor) -> AnyArray:
    return tensor.detach().cpu().numpy()
