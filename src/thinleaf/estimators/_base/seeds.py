"""Where the randomness of a fit comes from."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Return the root of all randomness of a fit; an int gives the same one each time."""
    if isinstance(random_state, Integral):
        return np.random.SeedSequence(int(random_state))
    return np.random.SeedSequence(int(check_random_state(random_state).randint(2**31 - 1)))
