"""Hidden states: what goes into a network's output layer, given or collected on the way."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from thinleaf._dtypes import PARAM, ParamArray
from thinleaf.torch.heads.tree_head import TreeHead

_NO_LABEL = -100
"""What transformers has in the place of labels that are padding."""


class _EnoughError(Exception):
    """Raised inside a forward pass when the states that were asked for are there."""


def find_layer(model: nn.Module, layer: str | nn.Module | None) -> tuple[str, nn.Linear | TreeHead]:
    """Return the output layer and its name in the network; or the head in its place.

    Parameters
    ----------
    model : Module
        A linear layer is its own output layer, named "".
    layer : str or Module, optional
        Its name or itself. By default, what ``get_output_embeddings`` gives (transformers), else
        the linear layer with the most outputs, the last one of these.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a Module, is {type(model).__name__}")
    modules = dict(model.named_modules())
    if isinstance(layer, str):
        if layer not in modules:
            raise ValueError(f"the network has no module named {layer!r}")
        name, found = layer, modules[layer]
    else:
        wanted = layer
        ask = getattr(model, "get_output_embeddings", None)
        if wanted is None and callable(ask):
            wanted = ask()
        if wanted is None:
            linear = [part for part in modules.values() if isinstance(part, nn.Linear | TreeHead)]
            if not linear:
                raise ValueError("the network has no linear layer: give layer")
            most = max(part.out_features for part in linear)
            wanted = [part for part in linear if part.out_features == most][-1]
        names = [name for name, part in modules.items() if part is wanted]
        if not names:
            raise ValueError("layer is no part of the network")
        name, found = names[0], wanted
    if not isinstance(found, nn.Linear | TreeHead):
        raise TypeError(f"the output layer must be nn.Linear, is {type(found).__name__}")
    return name, found


def put_layer(model: nn.Module, name: str, layer: nn.Module) -> None:
    """Put a layer in the place of the one of that name."""
    parent, _, own = name.rpartition(".")
    setattr(model.get_submodule(parent), own, layer)


def as_states(states: Any, dim: int) -> ParamArray:
    """Return hidden states of shape (..., dim) as rows of single precision."""
    array = states.detach().float().cpu().numpy() if isinstance(states, Tensor) else states
    array = np.asarray(array)
    if array.ndim < 1 or array.shape[-1] != dim:
        raise ValueError(f"states must have shape (…, {dim}), got {array.shape}")
    rows = np.ascontiguousarray(array.reshape(-1, dim), dtype=PARAM)
    if not np.isfinite(rows).all():
        raise ValueError("states must be finite")
    return rows


@torch.no_grad()
def collect_states(
    model: nn.Module,
    batches: Iterable[Any],
    layer: str | nn.Module | None = None,
    max_states: int | None = None,
) -> ParamArray:
    """Run a network over batches and keep what goes into its output layer.

    Parameters
    ----------
    model : Module
        Put into eval mode meanwhile.
    batches : iterable
        Such as a DataLoader: tensors, tuples of arguments, or mappings of named arguments. What a
        tuple has beyond the arguments that the network takes is left out, such as the labels of a
        classifier, and so are padded places of sequences with an ``attention_mask``. Networks of
        transformers with an encoder and a decoder are given ``labels``, too, which they make the
        decoder's input of; there, padded places are those of ``decoder_attention_mask``, or have
        the label -100.
    layer : str or Module, optional
        As for :func:`replace_head`.
    max_states : int, optional
        After so many, no further batch is run.

    Returns
    -------
    states : ndarray of shape (n, in_features)
    """
    name, output = find_layer(model, layer)
    device = output.weight.device
    most = _most_arguments(model)
    decodes = bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))
    parts: list[ParamArray] = []
    mask: Tensor | None = None

    def keep(_: nn.Module, arguments: tuple[Any, ...]) -> None:
        hidden = arguments[0].detach()
        if mask is not None and mask.shape == hidden.shape[:-1]:
            hidden = hidden[mask.to(hidden.device).bool()]
        parts.append(as_states(hidden, output.in_features))
        raise _EnoughError  # the layer itself is the slow part, and its logits are not needed

    was_training = model.training
    model.eval()
    hook = output.register_forward_pre_hook(keep)
    try:
        for batch in batches:
            positional, named = _arguments(batch, device, most)
            mask = _mask(named, decodes)
            if not decodes:
                named.pop("labels", None)
            try:
                model(*positional, **named)
            except _EnoughError:
                pass
            else:
                raise ValueError(f"the network does not use its layer {name!r} on a batch")
            if max_states is not None and sum(map(len, parts)) >= max_states:
                break
    finally:
        hook.remove()
        model.train(was_training)
    if not parts:
        raise ValueError("there are no batches")
    return np.concatenate(parts)[:max_states]


def _most_arguments(model: nn.Module) -> int | None:
    """Return how many positional arguments a network takes; None if there is no limit."""
    kinds = [given.kind for given in inspect.signature(model.forward).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return None
    return sum(kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD for kind in kinds)


def _mask(named: Mapping[str, Any], decodes: bool) -> Tensor | None:
    """Return which places of sequences are not padded, if the arguments of a network say so."""
    mask = named.get("decoder_attention_mask" if decodes else "attention_mask")
    labels = named.get("labels")
    if decodes and mask is None and isinstance(labels, Tensor):
        return labels != _NO_LABEL
    return mask if isinstance(mask, Tensor) else None


def _arguments(
    batch: Any, device: torch.device, most: int | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    def moved(value: Any) -> Any:
        return value.to(device) if isinstance(value, Tensor) else value

    if isinstance(batch, Mapping):
        return (), {name: moved(value) for name, value in batch.items()}
    if isinstance(batch, tuple | list):
        return tuple(moved(value) for value in batch[:most]), {}
    return (moved(batch),), {}
