"""Models that one fit can give: what each errs and costs, and which of them no other one beats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from thinleaf.model.variant import Variant


@dataclass(frozen=True)
class Point:
    """A model, and what was measured of it.

    Attributes
    ----------
    source : str
        Which of the trained models it is made of: "tree" is the default one.
    variant : Variant
        How that is deployed.
    error : float
        On held-out rows, by the metric that was asked for.
    us : float
        Microseconds of a prediction.
    bytes : int
        Of the model file.
    fit_seconds : float
        That training took, up to here.
    all_rows : bool
        Whether the model that is there is fitted to all rows, or without the held-out ones. Bytes
        of the latter are what to expect of the former.
    """

    source: str
    variant: Variant
    error: float
    us: float
    bytes: int
    fit_seconds: float
    all_rows: bool

    @property
    def name(self) -> str:
        """Say which model it is."""
        words = self.variant.words
        return words if self.source in ("tree", "forest") else f"{self.source}: {words}"

    def beats(self, other: Point) -> bool:
        """Return whether it is better in something, and worse in nothing."""
        mine = (self.error, self.us, self.bytes)
        theirs = (other.error, other.us, other.bytes)
        return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))


@dataclass(frozen=True)
class Frontier(Sequence[Point]):
    """All models that were measured, by error.

    A sequence of :class:`Point`; :meth:`front` are those that no other one beats. Printed, it is
    their table.

    Attributes
    ----------
    chosen : Point or None
        What the fit gave.
    metric : str
        What errors are.
    """

    points: tuple[Point, ...] = ()
    chosen: Point | None = None
    metric: str = "error"
    _sorted: tuple[Point, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        key = lambda p: (p.error, p.us, p.bytes, p.name)  # noqa: E731
        object.__setattr__(self, "_sorted", tuple(sorted(self.points, key=key)))

    def __len__(self) -> int:
        return len(self._sorted)

    def __getitem__(self, at: Any) -> Any:
        return self._sorted[at]

    def __iter__(self) -> Iterator[Point]:
        return iter(self._sorted)

    def front(self) -> list[Point]:
        """Return the models that no other one beats in error, µs and bytes together."""
        return [p for p in self if not any(other.beats(p) for other in self)]

    def within(
        self, max_us: float | None = None, max_bytes: float | None = None, slack: float = 1.0
    ) -> list[Point]:
        """Return the models that keep a budget, the one with the least error first.

        Parameters
        ----------
        max_us, max_bytes : float, optional
        slack : float
            Measured microseconds count as that many times more.
        """
        return [
            p
            for p in self
            if (max_us is None or slack * p.us <= max_us)
            and (max_bytes is None or p.bytes <= max_bytes)
        ]

    def nearest(self, max_us: float | None, max_bytes: float | None) -> Point:
        """Return the model that misses a budget by the least factor."""

        def factor(p: Point) -> float:
            of_time = 0.0 if max_us is None else p.us / max_us
            return max(of_time, 0.0 if max_bytes is None else p.bytes / max_bytes)

        return min(self, key=factor)

    def table(self, points: Iterable[Point] | None = None) -> list[dict[str, Any]]:
        """Return models as rows for :class:`pandas.DataFrame` and others; by default the front."""
        return [
            {
                "model": p.name,
                self.metric: p.error,
                "us": p.us,
                "bytes": p.bytes,
                "fit_seconds": p.fit_seconds,
                "all_rows": p.all_rows,
                "chosen": p == self.chosen,
            }
            for p in (self.front() if points is None else points)
        ]

    def drawn(self) -> dict[str, tuple[float, float]]:
        """Return µs and error of the front by name: what ``explain.frontier`` draws."""
        return {p.name: (p.us, p.error) for p in self.front()}

    def __str__(self) -> str:
        rows = [["", self.metric, "µs", "bytes", "fit s", "model"]]
        for p in self.front():
            mark = "*" if p == self.chosen else ""
            cells = [f"{p.error:.4f}", f"{p.us:.3g}", f"{p.bytes:,}", f"{p.fit_seconds:.1f}"]
            rows.append([mark, *cells, p.name])
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        return "\n".join(
            "  ".join([*(c.rjust(w) for c, w in zip(row, widths, strict=False)), row[5]])
            for row in rows
        )
