"""What an explanation is: plain values, the same for every model that predicts through a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from thinleaf._dtypes import AccumArray, IndexArray, ParamArray

if TYPE_CHECKING:
    from rich.text import Text

    from thinleaf.model.explanation.names import FeatureNames

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one feature of the input adds to a score.

    Attributes
    ----------
    feature : int
    name : str
    value : float
        Of the feature in the input; where something would have to be added, what it would need.
    amount : float
        Value times weight.
    """

    feature: int
    name: str
    value: float
    amount: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "feature": self.feature,
            "name": self.name,
            "value": self.value,
            "amount": self.amount,
        }


@dataclass(frozen=True, eq=False)
class Score:
    """A linear score and its parts: ``bias + sum(amounts) + rounding == total``, exactly.

    Attributes
    ----------
    total : float
        As the model computes it, in float32.
    bias : float
    rounding : float
        What the model's arithmetic in float32 leaves between the sum of the parts and the total.
    features, values, amounts : ndarray of shape (n_entries,)
        All entries of the input, in its order.
    names : FeatureNames
    """

    total: float
    bias: float
    rounding: float
    features: IndexArray = field(repr=False)
    values: ParamArray = field(repr=False)
    amounts: AccumArray = field(repr=False)
    names: FeatureNames = field(repr=False)

    @cached_property
    def contributions(self) -> tuple[Contribution, ...]:
        """The features that add something, the largest amounts first, whatever their sign."""
        return self.top(self.amounts.size)

    def top(self, n: int = _SHOWN) -> tuple[Contribution, ...]:
        """Return the n largest contributions, without naming the others."""
        order = (-np.abs(self.amounts)).argsort(kind="stable")[:n]
        name = self.names.name
        parts = (self.features[order], self.values[order], self.amounts[order])
        return tuple(
            Contribution(feature, name(feature), value, amount)
            for feature, value, amount in zip(*(part.tolist() for part in parts), strict=True)
            if amount != 0.0
        )

    @property
    def n_contributions(self) -> int:
        """How many features add something."""
        return int(np.count_nonzero(self.amounts))

    def enough(self, needed: float) -> tuple[Contribution, ...]:
        """Return the fewest features without which the score is lower by as much; none if none do.

        They are thought away one by one, the largest first. A recipe that scales the rest of a row
        up when a word is missing makes this an estimate.
        """
        order = np.argsort(-self.amounts, kind="stable")
        taken: list[Contribution] = []
        gone = 0.0
        for t in order.tolist():
            if gone > needed or self.amounts[t] <= 0.0:
                break
            taken.append(self._contribution(t))
            gone += float(self.amounts[t])
        return tuple(taken) if gone > needed else ()

    def reversed(self) -> Score:
        """Return the score with the opposite sign."""
        return Score(
            -self.total, -self.bias, -self.rounding, self.features, self.values, -self.amounts,
            self.names,
        )  # fmt: skip

    def _contribution(self, t: int) -> Contribution:
        feature = int(self.features[t])
        return Contribution(
            feature, self.names.name(feature), float(self.values[t]), float(self.amounts[t])
        )

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return it as JSON holds it, with the largest contributions, or all of them."""
        shown = self.contributions if top is None else self.top(top)
        left_out = 0.0
        if len(shown) < self.n_contributions:
            # on the grid of the parts, so that what JSON holds adds up as well
            left_out = float(self.amounts.sum()) - sum(part.amount for part in shown)
        return {
            "total": self.total,
            "bias": self.bias,
            "contributions": [part.to_dict() for part in shown],
            "other_features": left_out,
            "rounding": self.rounding,
        }


@dataclass(frozen=True, eq=False)
class Step:
    """A router on a path.

    Attributes
    ----------
    node : int
    depth : int
    branch, other : int
        The child that the path takes, and the most probable of the others; of two children, 0 is
        left and 1 is right.
    n_branches : int
    margin : Score
        How far the score of the branch is above that of the other: positive amounts pushed the
        input along the path, negative ones away from it. Below zero, the path leaves the most
        probable side.
    probability, other_probability : float
        Of the two branches, as the router sees it.
    """

    node: int
    depth: int
    branch: int
    other: int
    n_branches: int
    margin: Score
    probability: float
    other_probability: float

    @property
    def side(self) -> str:
        """The branch in words."""
        return side_name(self.branch, self.n_branches)

    @property
    def other_side(self) -> str:
        """The other branch in words."""
        return side_name(self.other, self.n_branches)

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "node": self.node,
            "depth": self.depth,
            "branch": self.branch,
            "side": self.side,
            "other": self.other,
            "other_side": self.other_side,
            "probability": self.probability,
            "other_probability": self.other_probability,
            "margin": self.margin.to_dict(top),
        }


def side_name(branch: int, n_branches: int) -> str:
    """Return a branch in words."""
    return ("left", "right")[branch] if n_branches == 2 else f"child {branch}"


@dataclass(frozen=True, eq=False)
class Candidate:
    """A class in a leaf.

    Attributes
    ----------
    label : object
    probability : float
        In this leaf alone, after what the leaf sets aside for classes outside it.
    score : Score or None
        None where a leaf is one label, and nothing is left to decide.
    """

    label: Any
    probability: float
    score: Score | None

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return it as JSON holds it."""
        score = None if self.score is None else self.score.to_dict(top)
        return {"label": self.label, "probability": self.probability, "score": score}


@dataclass(frozen=True, eq=False)
class Path:
    """One way from a root to a leaf, and what the leaf says.

    Attributes
    ----------
    tree : int
    weight : float
        Share of the mixture; the weights of all paths sum to one.
    leaf, node : int
        Number of the leaf, and of its node.
    n_classes : int
        How many classes the leaf holds.
    outside : float
        Probability that the leaf leaves to all other classes.
    make_steps, make_candidates : callable
        What ``steps`` and ``candidates`` are made by, when they are first looked at.
    """

    tree: int
    weight: float
    leaf: int
    node: int
    n_classes: int
    outside: float
    make_steps: Callable[[], tuple[Step, ...]]
    make_candidates: Callable[[], tuple[Candidate, ...]]

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The routers, from the root on."""
        return self.make_steps()

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The most probable classes of the leaf, best first, then other answers that it holds."""
        return self.make_candidates()

    def candidate(self, label: Any) -> Candidate | None:
        """Return what is shown of a label, or None."""
        return next((c for c in self.candidates if c.label == label), None)

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "tree": self.tree,
            "weight": self.weight,
            "steps": [step.to_dict(top) for step in self.steps],
            "leaf": self.leaf,
            "node": self.node,
            "n_classes": self.n_classes,
            "outside": self.outside,
            "candidates": [candidate.to_dict(top) for candidate in self.candidates],
        }


@dataclass(frozen=True, eq=False)
class Answer:
    """A label with its probability, and where that comes from.

    Attributes
    ----------
    label : object
    probability : float
        As in ``predict_proba``.
    parts : tuple of float
        What each path gives to it: ``sum(parts) + rounding == probability``, exactly.
    rounding : float
    """

    label: Any
    probability: float
    parts: tuple[float, ...]
    rounding: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "label": self.label,
            "probability": self.probability,
            "parts": list(self.parts),
            "rounding": self.rounding,
        }


@dataclass(frozen=True, eq=False)
class Change:
    """What would have to change at one place, for the other label to come out.

    Attributes
    ----------
    step : Step or None
        The router that would have to send the input elsewhere; None for the leaf.
    lead : Score
        What the input has against it there.
    remove : tuple of Contribution
        The fewest features of the input without which that would be so; none if none are enough.
    add : tuple of Contribution
        Features that speak for it most, each with the value that alone would be enough.
    """

    step: Step | None
    lead: Score
    remove: tuple[Contribution, ...]
    add: tuple[Contribution, ...]

    @property
    def needed(self) -> float:
        """By how much a score would have to change."""
        return self.lead.total

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "at": "leaf" if self.step is None else "router",
            "node": None if self.step is None else self.step.node,
            "needed": self.needed,
            "lead": self.lead.to_dict(top),
            "remove": [part.to_dict() for part in self.remove],
            "add": [part.to_dict() for part in self.add],
        }


@dataclass(frozen=True, eq=False)
class Route:
    """The way to a label in one tree: one that the input takes, or else the most probable.

    Attributes
    ----------
    tree, leaf, node : int
    n_leaves : int
        How many leaves of the tree hold the label.
    probability : float
        Of the way, by all of its routers.
    reached : bool
        Whether a path of the input ends there.
    fork : int or None
        Which of ``steps`` leaves the input's path; None if none does.
    steps : tuple of Step
    candidate, rival : Candidate
        The label in that leaf, and the best of all others there, or None.
    changes : tuple of Change
        All that would have to change, from the root on; nothing for what is so already.
    """

    tree: int
    leaf: int
    node: int
    n_leaves: int
    probability: float
    reached: bool
    fork: int | None
    steps: tuple[Step, ...]
    candidate: Candidate
    rival: Candidate | None
    changes: tuple[Change, ...]

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "tree": self.tree,
            "leaf": self.leaf,
            "node": self.node,
            "n_leaves": self.n_leaves,
            "probability": self.probability,
            "reached": self.reached,
            "fork": self.fork,
            "steps": [step.to_dict(top) for step in self.steps],
            "candidate": self.candidate.to_dict(top),
            "rival": None if self.rival is None else self.rival.to_dict(top),
            "changes": [change.to_dict(top) for change in self.changes],
        }


@dataclass(frozen=True, eq=False)
class Against:
    """Why not another label.

    Attributes
    ----------
    answer : Answer
        Of that label.
    routes : tuple of Route
        The way to it in each tree that has it, that of the likeliest first.
    """

    answer: Answer
    routes: tuple[Route, ...]

    @property
    def label(self) -> Any:
        """The label."""
        return self.answer.label

    @property
    def reached(self) -> bool:
        """Whether a path of the input ends in a leaf that holds it."""
        return any(route.reached for route in self.routes)

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "answer": self.answer.to_dict(),
            "reached": self.reached,
            "routes": [route.to_dict(top) for route in self.routes],
        }


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text, and what the terms that it is part of add together.

    Attributes
    ----------
    text : str
    start, end : int
        Where it stands.
    amount : float
        Its share in what led to the answer: in the margins of the routers on the path, and in the
        lead of the answer over the next best of the leaf; of all paths that end at the answer, by
        their weight. Terms of several words are shared out equally.
    """

    text: str
    start: int
    end: int
    amount: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"text": self.text, "start": self.start, "end": self.end, "amount": self.amount}


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why one input gets its label. Print it, look at it in a notebook, or take its values.

    Attributes
    ----------
    answers : tuple of Answer
        The most probable labels, best first.
    paths : tuple of Path
        All ways that the input takes, the weightiest first.
    n_classes, n_trees, beam : int
    temperature : float
        Of the routers in a beam.
    against : Against or None
        Why not another label, if that was asked.
    names : FeatureNames
        What features are called.
    """

    answers: tuple[Answer, ...]
    paths: tuple[Path, ...]
    n_classes: int
    n_trees: int
    beam: int
    temperature: float
    against: Against | None
    names: FeatureNames

    @property
    def text(self) -> str | None:
        """The input, if it was a text."""
        return self.names.text

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words of that text, in their order."""
        if self.text is None:
            return ()
        amounts: AccumArray | None = None
        for path in self.paths:
            if (answer := path.candidate(self.label)) is None:
                continue
            rival = next((c for c in path.candidates if c is not answer), None)
            scores = [(step.margin, path.weight) for step in path.steps]
            if answer.score is not None:
                scores.append((answer.score, path.weight))
            if rival is not None and rival.score is not None:
                scores.append((rival.score, -path.weight))
            for score, weight in scores:
                own = weight * score.amounts
                amounts = own if amounts is None else amounts + own
                features = score.features
        return () if amounts is None else self.names.words(features, amounts)

    @property
    def label(self) -> Any:
        """The label of the input."""
        return self.answers[0].label

    @property
    def probability(self) -> float:
        """The probability of that label."""
        return self.answers[0].probability

    @property
    def path(self) -> Path:
        """The weightiest path."""
        return self.paths[0]

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return everything as JSON holds it.

        Parameters
        ----------
        top : int, optional
            How many contributions of each score; by default all of them.
        """
        return {
            "label": self.label,
            "probability": self.probability,
            "answers": [answer.to_dict() for answer in self.answers],
            "n_classes": self.n_classes,
            "n_trees": self.n_trees,
            "beam": self.beam,
            "temperature": self.temperature,
            "paths": [path.to_dict(top) for path in self.paths],
            "against": None if self.against is None else self.against.to_dict(top),
            "text": self.text,
            "words": [word.to_dict() for word in self.words],
        }

    def to_text(self, top: int = _SHOWN, n_paths: int = 3) -> str:
        """Return it in words, with so many contributions of a score, and so many paths."""
        from thinleaf.model.explanation.in_words import lines_of

        return "\n".join("".join(part for part, _ in line) for line in lines_of(self, top, n_paths))

    def to_html(self, top: int = _SHOWN, n_paths: int = 3) -> str:
        """Return it as a piece of HTML without scripts, in which all that is not ours is escaped.

        It has the colours of the page around it, dark or light.
        """
        from thinleaf.model.explanation.in_html import html_of

        return html_of(self, top, n_paths)

    def __str__(self) -> str:
        """Return it in words."""
        return self.to_text()

    def __repr__(self) -> str:
        """Return the answer in one line."""
        return f"Explanation({self.label!r}, probability {self.probability:.4g})"

    def __rich__(self) -> Text:
        """Return it in words and colours, for terminals."""
        from thinleaf.model.explanation.in_words import rich_text

        return rich_text(self)

    def _repr_html_(self) -> str:
        return self.to_html()
