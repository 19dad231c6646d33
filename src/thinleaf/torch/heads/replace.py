"""From a network and text to a head: the one function that users call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from thinleaf._dtypes import ACCUM, PARAM, ParamArray
from thinleaf.arrays.checks import is_whole
from thinleaf.execution import Executor
from thinleaf.execution.choose import executor_for
from thinleaf.torch.heads.collect import as_states, collect_states, find_layer, put_layer
from thinleaf.torch.heads.leaf_sets import Counts, LeafSets, choose_sets, most_wanted
from thinleaf.torch.heads.routers import Routers
from thinleaf.torch.heads.rows import RowKind
from thinleaf.torch.heads.targets import FullAnswers, full_answers
from thinleaf.torch.heads.training import HeadLoss, TrainingSettings, train_routers
from thinleaf.torch.heads.tree_head import TrainedOn, TreeHead

_STATES_A_LEAF = 200
_MOST_DEPTH = 8
_N_DIRECTIONS = 192
"""Principal directions of states that routers are trained in: as good as all, and far faster."""

_MOST_MOMENTS = 50_000
_HELD_OUT = 0.05
_MOST_HELD_OUT = 5000
_PASSAGE = 256
"""Neighbouring states, which resemble each other, are held out together."""


def replace_head(
    model: nn.Module,
    states: Tensor | np.ndarray | Iterable[Any],
    *,
    layer: str | nn.Module | None = None,
    size: int = 2000,
    common: float = 0.25,
    depth: int | None = None,
    loss: HeadLoss = "mass",
    n_sweeps: int = 2,
    rows: RowKind | None = None,
    n_paths: int = 1,
    exact: bool = False,
    max_states: int | None = 300_000,
    in_place: bool = True,
    answers: FullAnswers | None = None,
    seed: int = 0,
    n_jobs: int | None = -1,
) -> TreeHead:
    """Put a tree in the place of a network's output layer.

    What the full layer says of each state is asked first. Routers are then trained by Tree
    Alternating Optimization, with what a leaf does not keep of that as the loss, and leaves keep
    the classes that the full layer wants among the states that reach them. They are scored with the
    layer's own weights.

    Parameters
    ----------
    model : Module
        A network with an ``nn.Linear`` output layer; or that layer itself, with states as tensor.
        A head that is there already is made anew, of the layer's own weights.
    states : Tensor, ndarray or iterable of batches
        Hidden states of shape (…, in_features), in the order of the text; or batches, such as a
        DataLoader's, that the network is run on to collect them (:func:`collect_states`).
    layer : str or Module, optional
        The output layer, or its name. By default, what ``get_output_embeddings`` gives, else the
        linear layer with the most outputs.
    size : int
        Classes that a leaf keeps: rows that are read for a state.
    common : float
        Share of them that is the same in all leaves: the most wanted ones over all states. On text
        of another kind, routers know less, and these are what a fixed list would have.
    depth : int, optional
        Routers on a path. By default, about 200 states train a leaf, and it is 8 at the most.
    loss : {"mass", "class", "margin"}
        Of a state at a leaf: the full layer's probability of what is not kept; whether its class is
        missing; or how much lower the best kept logit is.
    n_sweeps : int
        Passes of Tree Alternating Optimization.
    rows : {"float32", "float16", "bfloat16", "int8"}, optional
        What rows are stored as; by default as in the layer, without a copy.
    n_paths : {1, 2}
        With 2, a state is given the classes of two leaves, each of ``size``.
    exact : bool
        Answer with the full layer's best class, always, at the cost of reading all rows in 8 bits
        (:mod:`thinleaf.torch.heads.exact`).
    max_states : int, optional
        More are left out, evenly; of batches, no more are run than there must be.
    in_place : bool
        Whether the network gets the head. A layer that is given alone cannot.
    answers : FullAnswers, optional
        What the full layer says of the states, of :func:`full_answers`: for several heads it need
        be asked once, which takes most of the time.
    seed : int
    n_jobs : int, optional
        Threads; -1 is all cores. The head does not depend on it.

    Returns
    -------
    TreeHead

    Examples
    --------
    >>> import torch
    >>> from thinleaf.torch import replace_head
    >>> layer = torch.nn.Linear(8, 500)
    >>> head = replace_head(layer, torch.randn(2000, 8), size=100)
    >>> head(torch.randn(3, 8)).shape
    torch.Size([3, 500])
    """
    name, output = find_layer(model, layer)
    dim, n_classes = output.in_features, output.out_features
    _check(size, common, depth, n_sweeps, max_states)
    if isinstance(states, Tensor | np.ndarray):
        given = as_states(states, dim)
    elif name == "":
        raise TypeError("for a layer alone, states must be a tensor or an array")
    else:
        given = collect_states(model, states, layer, max_states)
    if len(given) < 2:
        raise ValueError(f"states must be two or more, got {len(given)}")
    if max_states is not None and len(given) > max_states:
        given = given[np.linspace(0, len(given) - 1, max_states).astype(np.int64)]
    size = min(int(size), n_classes)
    held_out = _held_out(len(given))
    training = np.flatnonzero(~held_out)
    if depth is None:
        depth = int(np.clip(np.log2(max(training.size / _STATES_A_LEAF, 1.0)), 0, _MOST_DEPTH))
    settings = TrainingSettings(depth, size, loss, n_sweeps, seed=seed)
    weight, bias = output.weight.detach(), output.bias
    if not bool(torch.isfinite(weight).all()):
        raise ValueError("the weights of the output layer must be finite")
    if answers is None:
        answers = full_answers(given, weight, None if bias is None else bias.detach())
    elif len(answers.classes) != len(given):
        raise ValueError(f"{len(given)} states, but {len(answers.classes)} answers")
    elif int(answers.classes.max()) >= n_classes:
        raise ValueError(f"the answers are of another layer: this one has {n_classes} classes")
    with executor_for(n_jobs) as executor:
        routers, sets = _train(given, answers, training, n_classes, common, settings, executor)
    leaf = routers.leaves_of(given)
    kept = sets.keeps(leaf, answers.classes, n_classes)
    if n_paths == 2 and routers.n_leaves > 1:
        kept |= sets.keeps(routers.other_leaves_of(given), answers.classes, n_classes)
    probe = np.flatnonzero(held_out) if held_out.any() else training
    outside = 1.0 - np.where(kept, answers.probabilities, 0.0).sum(axis=1)
    visits = np.bincount(leaf[training], minlength=routers.n_leaves)
    mass = np.bincount(leaf[training], outside[training], routers.n_leaves)
    trained_on = TrainedOn(
        int(training.size),
        float(kept[probe, 0].mean()),
        (visits / training.size).tolist(),
        (mass / np.maximum(visits, 1)).tolist(),
        {"loss": loss, "n_sweeps": n_sweeps, "depth": depth, "size": size, "seed": seed},
    )
    head = TreeHead(
        output.weight,
        bias,
        routers,
        sets,
        rows=rows,
        n_paths=n_paths,
        exact=exact,
        trained_on=trained_on,
    )
    if in_place and name != "":
        put_layer(model, name, head)
    return head


def _check(
    size: int, common: float, depth: int | None, n_sweeps: int, max_states: int | None
) -> None:
    if not is_whole(size) or size < 1:
        raise ValueError(f"size must be a whole number from 1 on, got {size!r}")
    if not 0.0 <= common <= 1.0:
        raise ValueError(f"common is a share from 0 to 1, got {common!r}")
    if depth is not None and (not is_whole(depth) or not 0 <= depth <= 16):
        raise ValueError(f"depth must be from 0 to 16, or None, got {depth!r}")
    if not is_whole(n_sweeps) or n_sweeps < 0:
        raise ValueError(f"n_sweeps must be 0 or more, got {n_sweeps!r}")
    if max_states is not None and (not is_whole(max_states) or max_states < 2):
        raise ValueError(f"max_states must be 2 or more, or None, got {max_states!r}")


def _held_out(n: int) -> np.ndarray:
    """Return which states are for judging alone: passages from all over the text."""
    mask = np.zeros(n, dtype=np.bool_)
    n_passages = int(min(_HELD_OUT * n, _MOST_HELD_OUT) // _PASSAGE)
    if n_passages:
        starts = np.linspace(0, n - _PASSAGE, n_passages).astype(np.int64)
        mask[(starts[:, None] + np.arange(_PASSAGE)).ravel()] = True
    elif n >= 40:
        mask[19::20] = True
    return mask


def _train(
    states: ParamArray,
    answers: FullAnswers,
    training: np.ndarray,
    n_classes: int,
    common: float,
    settings: TrainingSettings,
    executor: Executor,
) -> tuple[Routers, LeafSets]:
    """Train on principal directions; return routers for states as they are."""
    everything = Counts.of(answers, n_classes, 0.0)
    counts = Counts(everything.classes[training], everything.amount[training], n_classes)
    total = counts.total(slice(None))
    shared = most_wanted(total, round(common * settings.size))
    X = states[training]
    mean, spread = X.mean(axis=0, dtype=ACCUM), X.std(axis=0, dtype=ACCUM)
    spread = np.where(spread > 0.0, spread, 1.0)
    X -= mean.astype(PARAM)
    X /= spread.astype(PARAM)
    directions = _principal_directions(X[:: max(1, len(X) // _MOST_MOMENTS)], _N_DIRECTIONS)
    X = X @ directions.T
    routers, _ = train_routers(X, answers.take(training), counts, shared, settings, executor)
    weights = (routers.weights.astype(ACCUM) @ directions) / spread
    bias = routers.bias - weights @ mean
    routers = Routers(weights.astype(PARAM), bias.astype(PARAM))
    leaf = routers.leaves_of(states[training])
    n_leaves, size = routers.n_leaves, settings.size
    return routers, choose_sets(counts, leaf, n_leaves, size, shared, settings.kappa)


def _principal_directions(states: ParamArray, n: int) -> ParamArray:
    """Return the directions that states are made of, the largest first, one a row."""
    moments = np.zeros((states.shape[1],) * 2)
    for begin in range(0, len(states), 4096):
        block = states[begin : begin + 4096].astype(ACCUM)
        moments += block.T @ block
    _, turned = np.linalg.eigh(moments)
    return np.ascontiguousarray(turned[:, ::-1].T[:n]).astype(PARAM)
