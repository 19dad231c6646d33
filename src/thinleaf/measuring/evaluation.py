"""What a model did on labelled rows: errors, scores of labels, confusions, reliability.

An :class:`Evaluation` is plain data that writes itself as JSON, CSV, a figure or a page. Who counts
is in :mod:`thinleaf.measuring.tally`.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from thinleaf.measuring.confusions import ConfusedPair
from thinleaf.measuring.label_scores import LabelScores
from thinleaf.measuring.reliability import Reliability, Selection

if TYPE_CHECKING:
    from thinleaf.explain.axes import Axes


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a model did on labelled rows.

    Attributes
    ----------
    rows : int
    unknown_rows : int
        Rows whose label the model does not know: errors, without a probability.
    unknown_labels : dict
        These labels, the most frequent first, with their rows. If ``unknown_complete`` is False
        there were more than are named, which are then not in ``labels`` either.
    error : float
        Share of rows whose label is not found.
    top_k, top_k_error : int, float
        Share of rows whose label is not among the k most probable ones.
    perplexity : float or None
        Over all classes; None if no row has a known label.
    coverage : float or None
        Share of the rows whose leaves hold their label.
    covered_perplexity : float or None
        Of these, from their leaves alone.
    us_per_row : float
        Of prediction in batches, without reading and text features.
    labels : LabelScores
        Precision, recall, F1 and support of each label that occurs; ``labels.macro`` and
        ``labels.weighted`` are their means.
    pairs : tuple of ConfusedPair
        The pairs of labels that are confused most often.
    n_pairs : int
        How many pairs there are in all. If ``pairs_complete`` is False there are more, and counts
        of rare ones may be too low.
    reliability : Reliability
        Confidence beside accuracy, with ``ece``, ``mce`` and ``brier``.
    selection : Selection
        Share and error of the rows that have a least confidence.
    n_classes, beam, temperature : int, int, float
        Of the model.
    unit : {"row", "line"}
        What the numbers of examples count: rows from 0, or lines of a file from 1.
    """

    rows: int
    unknown_rows: int
    unknown_labels: dict[Any, int]
    unknown_complete: bool
    error: float
    top_k: int
    top_k_error: float
    perplexity: float | None
    coverage: float | None
    covered_perplexity: float | None
    us_per_row: float
    labels: LabelScores
    pairs: tuple[ConfusedPair, ...]
    n_pairs: int
    pairs_complete: bool
    reliability: Reliability
    selection: Selection
    n_classes: int
    beam: int
    temperature: float
    unit: Literal["row", "line"] = "row"

    def to_dict(self) -> dict[str, Any]:
        """Return all figures by name, as JSON holds them; what JSON lacks is None."""
        return {
            "rows": self.rows,
            "unknown_labels": self.unknown_rows,
            "error": self.error,
            "top_k": self.top_k,
            "top_k_error": self.top_k_error,
            "perplexity": _finite(self.perplexity),
            "coverage": self.coverage,
            "covered_perplexity": _finite(self.covered_perplexity),
            "beam": self.beam,
            "temperature": self.temperature,
            "us_per_row": self.us_per_row,
            "classes": self.n_classes,
            "macro": self.labels.macro.to_dict(),
            "weighted": self.labels.weighted.to_dict(),
            "ece": self.reliability.ece,
            "mce": self.reliability.mce,
            "brier": self.reliability.brier,
            "reliability": list(self.reliability.records()),
            "by_confidence": list(self.selection.records()),
            "labels": list(self.labels.records()),
            "confused": [self._pair(pair) for pair in self.pairs],
            "confused_pairs": self.n_pairs,
            "confused_pairs_complete": self.pairs_complete,
            "unknown": [{"label": name, "rows": n} for name, n in self.unknown_labels.items()],
            "unknown_complete": self.unknown_complete,
        }

    def _pair(self, pair: ConfusedPair) -> dict[str, Any]:
        examples = [asdict(example) for example in pair.examples]
        for example in examples:
            example[self.unit] = example.pop("number")
            if example["text"] is None:
                del example["text"]
        return {
            "label": pair.label,
            "predicted": pair.predicted,
            "rows": pair.count,
            "share": pair.share,
            "examples": examples,
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """Return :meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=indent)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a table of the labels' scores; a file of that name is replaced."""
        self.labels.to_csv(path)

    def to_html(self, path: str | os.PathLike[str], *, title: str = "Evaluation") -> None:
        """Write a report: one file that needs no network. A file of that name is replaced.

        Parameters
        ----------
        path : path-like
        title : str
            What stands at its head.
        """
        from thinleaf.measuring.evaluation_page import write_page

        write_page(self, path, title)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the reliability diagram; needs the extra ``plot``.

        Parameters
        ----------
        ax : Axes, optional
            By default, those of a new figure: ``evaluation.plot().figure.savefig(path)``.
        """
        from thinleaf.explain.reliability import plot_reliability

        table = self.reliability
        return plot_reliability(table.count, table.confidence, table.accuracy, table.ece, ax)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
