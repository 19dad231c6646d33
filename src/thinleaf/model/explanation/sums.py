"""Parts that add up to a score to the last bit, in whatever order they are added."""

from __future__ import annotations

import numpy as np

from thinleaf._dtypes import AccumArray


def additive(
    total: AccumArray, bias: AccumArray, amounts: AccumArray
) -> tuple[AccumArray, AccumArray, AccumArray]:
    """Return biases and amounts on a grid on which sums are exact, and what rounding is left.

    A model computes its scores in float32, so the true sum of their parts is a little off. The
    parts are moved to multiples of a power of two, a relative change of less than 1e-14, of which
    float64 adds up any number without an error; what is then missing from the model's own score is
    the rounding.

    Parameters
    ----------
    total : ndarray of shape (n_scores,)
        Scores as the model computes them.
    bias : ndarray of shape (n_scores,)
    amounts : ndarray of shape (n_parts, n_scores)

    Returns
    -------
    bias : ndarray of shape (n_scores,)
    amounts : ndarray of shape (n_parts, n_scores)
    rounding : ndarray of shape (n_scores,)
        ``bias + amounts.sum(axis=0) + rounding == total``.
    """
    size = np.abs(amounts).sum(axis=0) + np.abs(bias) + np.abs(total)
    step = np.ldexp(1.0, np.frexp(size)[1] - 51)
    bias, amounts = np.rint(bias / step) * step, np.rint(amounts / step) * step
    known = bias + amounts.sum(axis=0)
    rounding = total - known
    for i in np.flatnonzero(known + rounding != total):
        # a score 2^28 times smaller than its parts is on no grid of theirs: the largest of them
        # takes what rounding there is, which is that of float32
        if amounts.shape[0]:
            amounts[np.argmax(np.abs(amounts[:, i])), i] -= known[i]
        else:
            bias[i] -= known[i]
        rounding[i] = total[i]
    return bias, amounts, rounding
