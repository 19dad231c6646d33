"""A small output layer and hidden states whose classes depend on where they are."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

N_CLASSES, DIM = 300, 12


def layer(*, bias: bool = False, dtype: torch.dtype = torch.float32) -> nn.Linear:
    """Return a layer with rows of different lengths, so that some classes are frequent."""
    torch.manual_seed(0)
    linear = nn.Linear(DIM, N_CLASSES, bias=bias)
    with torch.no_grad():
        linear.weight.copy_(
            torch.randn(N_CLASSES, DIM) * torch.linspace(1.2, 0.6, N_CLASSES)[:, None]
        )
        if bias:
            linear.bias.copy_(torch.randn(N_CLASSES))
    return linear.to(dtype)


def states(n: int, seed: int = 0) -> Tensor:
    """Return states around a few centres."""
    rng = np.random.default_rng(seed)
    centres = 2.0 * np.random.default_rng(7).standard_normal((20, DIM))
    rows = centres[rng.integers(20, size=n)] + rng.standard_normal((n, DIM))
    return torch.from_numpy(rows.astype(np.float32))
