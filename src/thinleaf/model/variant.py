"""What one trained model gives without training: prefixes, beams, smaller and fewer weights."""

from __future__ import annotations

from dataclasses import dataclass

from thinleaf.model.frozen import FrozenTree
from thinleaf.model.packing import WeightType


@dataclass(frozen=True)
class Variant:
    """A way to deploy a model.

    Attributes
    ----------
    n_trees : int
        The first trees of a forest.
    beam : int
        Paths that a row takes in a tree.
    temperature : float
        What the scores of routers are then divided by.
    weights : {"float32", "float16", "int8"}
        Type of the leaf weights.
    dropped : float
        Weights below this share of the largest of their class and leaf are left out.

    Examples
    --------
    >>> from thinleaf.model.variant import Variant
    >>> Variant(n_trees=2, beam=4, weights="int8").words
    '2 trees, beam 4, int8'
    """

    n_trees: int = 1
    beam: int = 1
    temperature: float = 1.0
    weights: WeightType = "float32"
    dropped: float = 0.0

    def of(self, model: FrozenTree) -> FrozenTree:
        """Return a model of float32 weights deployed so."""
        if self.n_trees < model.n_trees:
            model = model.prefix(self.n_trees)
        if self.dropped:
            model = model.thinned(self.dropped)
        if self.weights != "float32":
            model = model.quantized(self.weights)
        beam = self.beam if model.n_leaves > model.n_trees else 1
        return model if beam == 1 else model.with_beam(beam, temperature=self.temperature)

    @property
    def words(self) -> str:
        """Say it in a few words."""
        parts = ["1 tree" if self.n_trees == 1 else f"{self.n_trees} trees"]
        if self.beam > 1:
            at = "" if self.temperature == 1.0 else f" at temperature {self.temperature:g}"
            parts.append(f"beam {self.beam}{at}")
        if self.weights != "float32":
            parts.append(self.weights)
        if self.dropped:
            parts.append(f"weights below {100 * self.dropped:g} % dropped")
        return ", ".join(parts)
