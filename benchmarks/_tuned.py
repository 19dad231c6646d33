"""Other libraries as their users would tune them: a small grid, chosen on held-out training rows.

A grid is a ladder of strengths of the penalty around the default, which grows while its end is the
best, and then some alternatives at the best strength. What has the fewest errors on a fifth of the
training rows is fitted to all of them. One thread everywhere.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks._data import EMBEDDED_SETS
from thinleaf.measuring import Split
from thinleaf.measuring.latency import Stopwatch
from thinleaf.measuring.peers import NapkinXC, Pecos
from thinleaf.measuring.systems import System

Settings = dict[str, Any]

MOST_STEPS = 4
"""How far a ladder goes from the default."""

SVC_WORK = 3e9
"""Of more rows · classes · nonzeros a row, a grid of LinearSVC is chosen on fewer rows."""

HELD_OUT = 0.2


class Sklearn:
    """A model of scikit-learn as a system, as far as errors and seconds go."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, split: Split) -> None:
        """Train on one thread."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(split.X_train, split.y_train)

    def predict(self, split: Split) -> np.ndarray:
        """Return the class ids of the test part."""
        return self.model.predict(split.X_test)

    def obstacle(self, split: Split) -> None:
        """Return that there is none."""
        return

    def measured(self) -> None:
        """Return that it does not measure itself."""
        return


@dataclass(frozen=True)
class Contender:
    """A library: how it is made with settings, and which are tried.

    Attributes
    ----------
    name : str
    make : callable
        Of settings.
    strength : tuple of str
        The settings that a ladder changes, all alike.
    default, factor : float
        Of the ladder.
    others : tuple of dict
        Settings that are tried at the best strength, one after the other.
    most_work : float
        Of more rows · classes · nonzeros a row, its grid is chosen on fewer rows.
    also_default : bool
        Whether a fit with its defaults is reported, too.
    """

    name: str
    make: Callable[..., System | Sklearn]
    strength: tuple[str, ...] = ()
    default: float = 1.0
    factor: float = 3.0
    others: tuple[Settings, ...] = ()
    most_work: float = math.inf
    also_default: bool = False

    def at(self, step: int) -> Settings:
        """Return the settings of a step of the ladder; those of step 0 are the defaults."""
        value = float(f"{self.default * self.factor**step:.3g}")
        return dict.fromkeys(self.strength, value) if step else {}


@dataclass
class Search:
    """What has been tried, in order."""

    tried: list[tuple[Settings, float]] = field(default_factory=list)

    @property
    def best(self) -> Settings:
        """Return what has the fewest errors; of equals, the first."""
        return min(self.tried, key=lambda pair: pair[1])[0] if self.tried else {}

    def __str__(self) -> str:
        """Return all of it in a line."""
        return "; ".join(f"{shown(s)}: {100 * error:.2f}" for s, error in self.tried)


def shown(settings: Settings) -> str:
    """Return settings in a line."""
    return ", ".join(f"{name} {value:g}" for name, value in settings.items()) or "defaults"


PECOS = Contender(
    "PECOS XR-Linear",
    lambda **settings: Pecos(timed=False, **settings),
    ("Cp", "Cn"),
    others=({"max_leaf_size": 400}, {"threshold": 0.01}),
    also_default=True,
)
NAPKINS = tuple(
    Contender(
        f"napkinXC {kind}",
        lambda kind=kind, **settings: NapkinXC(kind, **settings),
        ("liblinear_c",),
        10.0,
        others=({"max_leaves": 400}, {"weights_threshold": 0.01}),
        also_default=True,
    )
    for kind in ("PLT", "HSM")
)
SVC = Contender(
    "LinearSVC",
    lambda **settings: Sklearn(LinearSVC(random_state=0, **settings)),
    ("C",),
    most_work=SVC_WORK,
)
LOGISTIC = Contender(
    "logistic regression",
    lambda **settings: Sklearn(LogisticRegression(**settings)),
    ("C",),
    factor=10.0,
)
TREE = Contender("scikit-learn tree", lambda: Sklearn(DecisionTreeClassifier(random_state=0)))
NEIGHBOUR = Contender("1-nearest neighbour", lambda: Sklearn(KNeighborsClassifier(1)))

SLOW = {
    "geo_admin1": ("LinearSVC", "logistic regression"),
    "fontglyph1000": ("LinearSVC",),
    "omniglot": ("LinearSVC",),
    "icd10cm": ("LinearSVC",),
    "wordnet_hypernym": ("LinearSVC",),
    "debian_paths": ("LinearSVC",),
    "bible_verse": ("LinearSVC",),
    **dict.fromkeys(EMBEDDED_SETS, ("scikit-learn tree",)),
}
"""What a set would keep busy for long."""


def contenders(name: str, split: Split) -> tuple[Contender, ...]:
    """Return what is measured on a set."""
    all_of_them = (PECOS, *NAPKINS, SVC) if split.sparse else (TREE, NEIGHBOUR, LOGISTIC, SVC)
    return tuple(peer for peer in all_of_them if peer.name not in SLOW.get(name, ()))


def inner(split: Split, share: float = HELD_OUT, every: int = 1) -> Split:
    """Return a split of the training rows: a share drawn at random is held out.

    Parameters
    ----------
    split : Split
    share : float
    every : int
        Take one of so many of the other rows for training.
    """
    order = np.random.default_rng(1).permutation(split.y_train.size)
    test, train = np.split(order, [int(share * order.size)])
    X, y = split.X_train, split.y_train
    return Split.of(X[train[::every]], y[train[::every]], X[test], y[test])


def grid_every(contender: Contender, split: Split) -> int:
    """Return that a grid is chosen on one of so many rows."""
    cells = split.X_train.nnz if split.sparse else split.X_train.size
    return max(1, round(float(cells) * split.n_classes / contender.most_work))


def search(contender: Contender, error_of: Callable[[Settings], float]) -> Search:
    """Return what a grid gives: the ladder, longer where its end is the best, then the others."""
    found = Search()
    if not contender.strength:
        return found
    errors: dict[int, float] = {}

    def climb(step: int) -> None:
        errors[step] = error_of(contender.at(step))
        found.tried.append((contender.at(step), errors[step]))

    for step in (0, -1, 1):
        climb(step)
    while True:
        best = min(errors, key=lambda step: (errors[step], abs(step)))
        further = best + (1 if best > 0 else -1)
        if best == 0 or further in errors or abs(further) > MOST_STEPS:
            break
        climb(further)
    for other in contender.others:
        settings = contender.at(best) | other
        found.tried.append((settings, error_of(settings)))
    return found


def fitted(contender: Contender, settings: Settings, split: Split) -> tuple[float, float]:
    """Return the test error and the seconds of one fit."""
    system = contender.make(**settings)
    with Stopwatch() as watch:
        system.fit(split)
    measured = system.measured() or {"train_seconds": watch.seconds}
    error = float(np.mean(system.predict(split) != split.y_test))
    return error, measured["train_seconds"]


def tuned(contender: Contender, split: Split) -> list[tuple[str, Settings, str, float, float]]:
    """Return names, settings, what was tried, test errors and seconds: as chosen, and by default.

    Both or none, so that a run that ends in between does not leave a part.
    """
    every = grid_every(contender, split)
    parts = inner(split, every=every)
    found = search(contender, lambda settings: fitted(contender, settings, parts)[0])
    tried = f"on one of {every} rows, {found}" if found.tried and every > 1 else str(found)
    fits = [(contender.name, found.best, tried, *fitted(contender, found.best, split))]
    if found.best and contender.also_default:
        fits.append((f"{contender.name}, defaults", {}, "", *fitted(contender, {}, split)))
    return fits
