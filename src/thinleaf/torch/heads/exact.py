"""Certified bounds: the class of the full layer, always, without reading all of its weights.

With the mean row c taken away, a logit is c·h + (w - c)·h, and the first part is the same for all.
Rows and states are turned so that the first coordinates hold most of what states are made of, and
rows are kept in 8 bits. Read up to coordinate r, a row w = s·q + e gives

    w·h ≤ s·q₁·h₁ + ‖e₁‖‖h₁‖ + ‖w₂‖‖h₂‖ + rounding,

with 1 for what was read and 2 for the rest (Cauchy-Schwarz on both parts). A row whose bound is
below the best logit of the leaf cannot win: most are left before all of their bytes are read. The
few others are scored by the layer's own weights. Where two logits are so close that the order of
summation could decide, the full layer itself is asked.

Centres and radii of clusters of rows, the simpler bound, rule out a third of the clusters in a
language model, since radii are nearly as large as rows (``docs/heads.md``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thinleaf._dtypes import ACCUM, INDEX, PARAM, AnyArray, IndexArray, ParamArray
from thinleaf.torch.heads.kernels.kept_rows import survivors_of

_UNIT = 2.0**-24
_STEPS = (1 / 3, 5 / 9, 1.0)
"""Shares of a row after which its bound is looked at."""

_BLOCK = 4096


def principal_rotation(states: ParamArray) -> ParamArray:
    """Return the directions that states are made of, the largest first, one a row.

    Any orthogonal matrix makes bounds that hold; with this one they rule out more.
    """
    moments = np.zeros((states.shape[1],) * 2)
    for begin in range(0, len(states), _BLOCK):
        block = states[begin : begin + _BLOCK].astype(ACCUM)
        moments += block.T @ block
    _, turned = np.linalg.eigh(moments)
    return np.ascontiguousarray(turned[:, ::-1].T).astype(PARAM)


@dataclass(frozen=True)
class Bounds:
    """What certifies that other rows cannot win.

    Attributes
    ----------
    centre : ndarray of shape (in_features,)
    rotation : ndarray of shape (in_features, in_features)
        Turned states are ``rotation @ state``.
    rows : ndarray of shape (n_classes, in_features)
        Turned rows without their mean, as int8.
    numbers : ndarray of shape (n_classes, 9)
        Of each step: the scale of what is read in it, then ‖e₁‖ and ‖w₂‖ after it.
    steps : ndarray of shape (3,)
        Coordinates that are read then.
    longest : float
        The largest norm of a row of the layer.
    """

    centre: ParamArray
    rotation: ParamArray
    rows: AnyArray
    numbers: ParamArray
    steps: IndexArray
    longest: float

    @classmethod
    def of(cls, weight: ParamArray, rotation: ParamArray) -> Bounds:
        """Return the bounds of a layer.

        Parameters
        ----------
        weight : ndarray of shape (n_classes, in_features)
        rotation : ndarray of shape (in_features, in_features)
            Of :func:`principal_rotation`.
        """
        n_classes, dim = weight.shape
        centre = weight.mean(axis=0, dtype=ACCUM)
        steps = np.unique([max(1, round(share * dim)) for share in _STEPS])
        steps = np.concatenate([steps, np.repeat(dim, 3 - steps.size)]).astype(INDEX)
        rows = np.empty((n_classes, dim), dtype=np.int8)
        numbers = np.empty((n_classes, 9), dtype=PARAM)
        longest = 0.0
        for begin in range(0, n_classes, _BLOCK):
            part = slice(begin, min(begin + _BLOCK, n_classes))
            block = weight[part].astype(ACCUM)
            longest = max(longest, float(np.linalg.norm(block, axis=1).max()))
            block = (block - centre) @ rotation.T.astype(ACCUM)
            error, begun = np.empty_like(block), 0
            for i, read in enumerate(steps.tolist()):
                here = slice(begun, read)
                largest = np.abs(block[:, here]).max(axis=1, initial=0.0)
                scale = np.maximum(largest / 127.0, 1e-30).astype(PARAM)
                rows[part, here] = np.rint(block[:, here] / scale[:, None].astype(ACCUM))
                error[:, here] = block[:, here] - rows[part, here] * scale[:, None].astype(ACCUM)
                numbers[part, 3 * i] = scale
                numbers[part, 3 * i + 1] = np.linalg.norm(error[:, :read], axis=1)
                numbers[part, 3 * i + 2] = np.linalg.norm(block[:, read:], axis=1)
                begun = read
        for i in (1, 2, 4, 5, 7, 8):
            numbers[:, i] *= 1.0 + 1e-5  # norms are rounded up
        return cls(centre.astype(PARAM), rotation, rows, numbers, steps, longest)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in (self.centre, self.rotation, self.rows, self.numbers))

    def rounding(self, state: ParamArray) -> float:
        """Return by how much a sum of products in single precision may be off."""
        return 4.0 * (state.size + 8) * _UNIT * self.longest * float(np.linalg.norm(state))

    def survivors(self, state: ParamArray, best: float, bias: ParamArray) -> tuple[IndexArray, int]:
        """Return the classes that may have a logit of ``best`` or more, and the bytes read."""
        turned = self.rotation @ state
        norms = np.array(
            [
                [np.linalg.norm(turned[:read]), np.linalg.norm(turned[read:])]
                for read in self.steps.tolist()
            ],
            dtype=PARAM,
        )
        slack = 2.0 * self.rounding(state)
        least = best - float(self.centre.astype(ACCUM) @ state.astype(ACCUM)) - slack
        out = np.empty(len(self.rows), dtype=INDEX)
        n, read = survivors_of(turned, norms, self.steps, self.rows, self.numbers, bias, least, out)
        return out[:n], int(read)
