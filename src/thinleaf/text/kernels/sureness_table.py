"""What is in the table of a rejection, and the bounds of its signs: nothing here is compiled."""

from __future__ import annotations

from typing import Final

ARRAYS: Final = ("weights", "scores", "probability", "precision")
"""The arrays whose addresses follow the number of knots."""

N_KNOTS, WEIGHTS, SCORES, PROBABILITY, PRECISION = range(1 + len(ARRAYS))

LEAST: Final = 1e-6
"""Probabilities and masses nearer to 0 or 1 count as this near."""

TINY: Final = 1e-300
"""What nothing is divided by less than."""
