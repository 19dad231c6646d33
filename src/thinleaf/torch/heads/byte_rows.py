"""Rows of an output layer in 8 bits, with what it takes to bound the logit of every row.

With the mean row c taken away, a row is w = c + s·q + e: a scale s, whole numbers q from -127 to
127, and the rest e. A state is h = t·g + r, with g of 16 bits. Then

    w·h = c·h + s·t·(q·g) + (s·q)·r + e·h,

where q·g is a sum of whole numbers, without rounding, and the last two are at most ‖s·q‖‖r‖ and
‖e‖‖h‖ (Cauchy-Schwarz). In a language model that is a bound of about one logit: a few rows of
50,000 may be above the best one. Centres and radii of clusters of rows, the simpler bound, rule out
a third of the clusters, since radii are nearly as large as rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from thinleaf._dtypes import AnyArray, ParamArray

_BLOCK = 4096
_UP = 1.0 + 1e-6
"""Norms are rounded up when they are stored."""


class ByteRows(NamedTuple):
    """Rows of 8 bits.

    Attributes
    ----------
    rows : Tensor of shape (n_classes, in_features)
        The numbers q.
    scale, error : Tensor of shape (n_classes,)
        s and ‖e‖ of each row.
    centre : Tensor of shape (in_features,)
        The mean row.
    norms : Tensor of shape (2,)
        The largest ‖s·q‖, and the largest norm of a row of the layer.
    """

    rows: Tensor
    scale: Tensor
    error: Tensor
    centre: Tensor
    norms: Tensor

    @classmethod
    def of(cls, weight: Tensor) -> ByteRows:
        """Return the rows of a layer."""
        device, (n_classes, dim) = weight.device, weight.shape
        centre = torch.zeros(dim, dtype=torch.float64, device=device)
        for part in torch.split(weight.detach(), _BLOCK):
            centre += part.double().sum(dim=0)
        centre = (centre / max(n_classes, 1)).float()
        rows = torch.empty(weight.shape, dtype=torch.int8, device=device)
        scale, error = (torch.empty(n_classes, device=device) for _ in range(2))
        norms = torch.zeros(2, dtype=torch.float64, device=device)
        for begin in range(0, n_classes, _BLOCK):
            here = slice(begin, begin + _BLOCK)
            whole = weight.detach()[here].double()
            block = whole - centre.double()
            scale[here] = block.abs().amax(dim=1).clamp(min=1e-30).float() / 127.0
            by = scale[here].double()[:, None]
            q = (block / by).round_().clamp_(-127, 127)
            rows[here] = q.to(torch.int8)
            error[here] = ((block - q * by).norm(dim=1) * _UP).float()
            largest = torch.stack([(q * by).norm(dim=1).max(), whole.norm(dim=1).max()])
            norms = torch.maximum(norms, largest)
        return cls(rows, scale, error, centre, (norms * _UP).float())

    def unpacked(self, classes: Tensor) -> Tensor:
        """Return some rows as numbers that can be multiplied with states."""
        return self.rows[classes].float() * self.scale[classes][:, None] + self.centre

    def arrays(self) -> tuple[AnyArray, ParamArray, ParamArray, ParamArray, ParamArray]:
        """Return them as kernels take them."""
        rows, scale, error, centre, norms = (np.asarray(tensor.numpy()) for tensor in self)
        return rows, scale, error, centre, norms
