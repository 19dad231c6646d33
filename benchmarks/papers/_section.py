"""What the page says of one table or figure: the data, the paper's numbers beside ours, verdicts.

A verdict is a rule applied to numbers of committed results. A claim that one error is lower than
another holds if the difference is larger than two standard errors, as if each model had test rows
of its own; they have the same, and what the seeds of training do is not counted in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks._report import RESULTS, Result, Table, read, table

CLAIMS = ["claim", "paper", "ours", "verdict"]
OURS = "not in the paper"


@dataclass(frozen=True)
class Check:
    """A number or a claim of the paper, and ours."""

    what: str
    paper: str
    ours: str
    holds: bool
    why_not: str = ""

    @property
    def verdict(self) -> str:
        """Return the verdict, with the reason if there is one to give."""
        word, why = "holds" if self.paper == OURS else "reproduced", self.why_not
        if self.holds:
            return word
        no = "does not hold" if self.paper == OURS else "not reproduced"
        return f"{no}: {why or 'the reason is not known'}"


@dataclass(frozen=True)
class Section:
    """A table or figure of a paper.

    Attributes
    ----------
    title : str
    sources : sequence of str
        Names of the results that the numbers are from.
    data : str
        What was run, and which data stands in for which.
    checks : sequence of Check
    parts : sequence of str
        Tables and notes to show before the verdicts.
    """

    title: str
    sources: Sequence[str]
    data: str
    checks: Sequence[Check]
    parts: Sequence[str] = field(default=())

    def verdicts(self) -> Table:
        """Return the checks as a table."""
        rows = [[check.what, check.paper, check.ours, check.verdict] for check in self.checks]
        return table(CLAIMS, rows)

    @property
    def score(self) -> tuple[int, int]:
        """Return how many of the paper's claims are reproduced, and how many there are."""
        holds = [check.holds for check in self.checks if check.paper != OURS]
        return sum(holds), len(holds)


def number(value: float) -> str:
    """Return a number as the page shows it."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def at_most(what: str, paper: float, ours: float, why_not: str = "", unit: str = " %") -> Check:
    """Check that ours is no higher than the paper's number, on the same data."""
    return Check(what, number(paper) + unit, number(ours) + unit, ours <= paper, why_not)


def lower_error(
    what: str, paper: str, lower: float, higher: float, n_rows: int, why_not: str = ""
) -> Check:
    """Check that one error in percent is lower than another, by more than two standard errors."""
    p = (lower + higher) / 200
    noise = 200 * math.sqrt(2 * p * (1 - p) / n_rows)
    ours = f"{number(lower)} against {number(higher)} %"
    if abs(higher - lower) <= noise:
        why_not = f"the difference is within two standard errors, {noise:.2f} points"
    return Check(what, paper, ours, higher - lower > noise, why_not)


def lower(
    what: str, paper: str, low: float, high: float, why_not: str = "", unit: str = ""
) -> Check:
    """Check that one number is lower than another."""
    ours = f"{number(low)} against {number(high)}{unit}"
    return Check(what, paper, ours, low < high, why_not)


def by_name(part: Table) -> dict[Any, dict[str, Any]]:
    """Return the rows of a table by their first cell, cells by header."""
    return {row[0]: dict(zip(part.headers[1:], row[1:], strict=True)) for row in part.rows}


def results(names: Sequence[str]) -> dict[str, Result]:
    """Return those of some results that are there."""
    return {name: read(name) for name in names if (RESULTS / f"{name}.md").exists()}
