"""PaperTable: the paper's figures, what came out here, and what becomes of its claims.

The rule is one for all: a claim is a difference that should be above 0. Its 95 % interval comes
from seeds, which in a world draw other rows too; on a folder, whose rows stay the same, resampled
requests are added. All above 0: held. All below: did not hold. Else, or with one seed, which
says nothing about chance: cannot be told.
"""

__all__ = [
    "BUCKETS",
    "COMPONENTS",
    "INFERENCE",
    "LOSSES",
    "MAIN",
    "ONLINE",
    "PAIRS",
    "SKEW",
    "SPEED",
    "Epoch",
    "Estimate",
    "Outcome",
    "PaperTable",
    "Row",
    "Verdict",
    "estimate_of",
    "judge",
    "known_estimate",
    "verdict",
]

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import sqrt
from statistics import NormalDist
from typing import Annotated, Any, Literal, Self

import numpy as np
from msgspec import Meta
from scipy.special import stdtrit

from harmonrank.support.storage import decode

Outcome = Literal["held", "did not hold", "cannot be told"]
Point = Annotated[list[float], Meta(min_length=2, max_length=2)]
Area = Annotated[list[float | None], Meta(min_length=3, max_length=3)]
Epoch = Annotated[list[float | None], Meta(min_length=3, max_length=3)]
"""Loss, validation AUC-sum and share of items in gradient."""

LEVEL = 0.95

_METHODS = ("mbce", "label-aggregation", "reinforce", "harmonrank-paper")
MAIN = {
    setting: dict(zip(_METHODS, sums, strict=True))
    for setting, sums in {
        ("qkvideo", 3): (2.2420, 2.4040, 2.2488, 2.4617),
        ("qkvideo", 5): (3.6465, 3.8311, 3.9074, 3.9186),
        ("elive", 3): (2.1555, 2.0765, 2.1930, 2.2191),
        ("elive", 5): (3.6682, 3.6883, 3.7467, 3.7522),
    }.items()
}
"""AUC-sum by data set, number of objectives and method."""

LOSSES = {
    "pairwise-square": 3.7415,
    "pairwise-logistic": 3.7433,
    "aucm": 3.7412,
    "harmonrank-paper": 3.7522,
}
COMPONENTS = {
    "self_attention": 3.7494,
    "personalised": 3.7464,
    "cross_attention": 3.7512,
    "gate": 3.7362,
    "linear": 3.7493,
}
BUCKETS = {None: 3.7470, 100: 3.7507, 300: 3.7522, 600: 3.7492}
SPEED = {
    "mbce": 27_400.0,
    "pairwise-logistic": 24_800.0,
    "aucm": 26_900.0,
    "harmonrank-paper": 26_000.0,
}
"""Training rows per second."""

INFERENCE = {"ms": 4.0, "rows/s": 2_500_000.0, "parameters": 2_400.0, "FLOPs": 273e6}
"""On a T4, per batch of 10,240."""

SKEW = {
    "mbce": {1_000: 3.67, 10_000: 3.48, 100_000: 3.31},
    "pairwise-logistic": {1_000: 3.74, 10_000: 3.60, 100_000: 3.58},
    "harmonrank-paper": {1_000: 3.75, 10_000: 3.74, 100_000: 3.70},
}
"""AUC-sum by method and negatives per purchase in training."""

PAIRS = (("buy", "follow"), ("comment", "buy"), ("comment", "follow"), ("long_view", "follow"))
"""The pairs of the trade-off figure; the paper prints no numbers for them."""

_OUTCOMES = ("buy", "comment", "follow", "long_view", "like")
ONLINE = {
    method: dict(zip(_OUTCOMES, lifts, strict=True))
    for method, lifts in {
        "reinforce": (1.547, -0.253, 0.302, -0.238, 0.817),
        "harmonrank-paper": (2.635, 3.034, 0.451, 0.290, 1.673),
    }.items()
}
"""Lift over MBCE in per cent; the paper's watch time is our long view."""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its 95 % interval; no interval where there is one seed only.

    Attributes:
        seeds: How many values the mean is of; rounds, where it is a time.
    """

    mean: float
    low: float | None
    high: float | None
    seeds: int

    @property
    def reach(self) -> float | None:
        """Half the width of the interval."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Row:
    """One number: the paper's and ours.

    Attributes:
        group: Rows of one group are compared with each other.
        unit: What is counted; it decides how the number is written.
        ours: None where it could not be had; the note says why.
        regret: Distance to the best possible, where a world tells it.
    """

    group: str
    name: str
    unit: str
    paper: float | None
    ours: Estimate | None
    regret: Estimate | None = None
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """What becomes of a claim.

    Attributes:
        claim: A plain sentence.
        source: Whose claim it is: 'paper', or 'ours' where we go beyond it.
        paper: What the paper has for it, in the unit of `ours`.
        ours: Positive where the claim is right.
    """

    claim: str
    source: Literal["paper", "ours"]
    outcome: Outcome
    unit: str
    paper: float | None
    ours: Estimate | None


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper, made again.

    Attributes:
        key: The name by which the command knows it.
        data: Which data it is.
        settings: How it was made, in words.
        matrices: Name of a matrix to its values by objective, where the table is about relations.
        curves: Title of a panel to its curves, each a list of points, where it is about fronts.
        areas: By way to fuse, AUC of each objective with its interval over seeds.
        training: By network, of each epoch of the first seed its loss, validation AUC-sum and
            share of items in gradient.
    """

    key: str
    title: str
    data: str
    settings: str
    command: str
    objectives: tuple[str, ...]
    rows: tuple[Row, ...]
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...] = ()
    matrices: Mapping[str, list[list[float]]] = field(default_factory=dict)
    curves: Mapping[str, Mapping[str, list[Point]]] = field(default_factory=dict)
    areas: Mapping[str, list[Area]] = field(default_factory=dict)
    training: Mapping[str, list[Epoch]] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, str, str]:
        """What a later run must share to take this table's place: the key, data and protocol."""
        return self.key, self.data.partition(",")[0], self.settings.partition(":")[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        return asdict(self)

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Self:
        """Build what `to_dict` returned; refuse anything else in one sentence."""
        return decode(parts, cls, "A table")

    def __post_init__(self) -> None:
        """Refuse matrices and AUCs of other objectives."""
        M = len(self.objectives)
        for name, matrix in self.matrices.items():
            if [len(row) for row in matrix] != [M] * M:
                raise ValueError(f"expected {M} rows and columns in the matrix '{name}'")
        for name, areas in self.areas.items():
            if len(areas) != M:
                raise ValueError(f"expected {M} AUCs of '{name}'")


def estimate_of(values: np.ndarray) -> Estimate:
    """Return the mean over seeds with its interval.

    Two parts add up in squares: t·s/√K of the K seeds, and z times the standard deviation of
    the mean over resampled rows, where there are any.

    >>> estimate = estimate_of(np.array([[1.0], [2.0], [3.0]]))
    >>> estimate.mean, round(estimate.low, 3)
    (2.0, -0.484)

    Args:
        values: (seeds, 1 + replicates): a seed's value, then the same on each resampled log.
    """
    seeds = len(values)
    mean = float(values[:, 0].mean())
    if seeds < 2:
        return Estimate(mean, None, None, seeds)
    spread = float(values[:, 0].std(ddof=1)) / sqrt(seeds)
    variance = float(stdtrit(seeds - 1, 0.5 + LEVEL / 2) * spread) ** 2
    if values.shape[1] > 1:
        z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
        variance += (z * float(np.nanstd(values[:, 1:].mean(axis=0), ddof=1))) ** 2
    return Estimate(mean, mean - sqrt(variance), mean + sqrt(variance), seeds)


def known_estimate(values: np.ndarray | None) -> Estimate | None:
    """Return the estimate, where there are values."""
    return None if values is None else estimate_of(values)


def judge(ours: Estimate | None) -> Outcome:
    """Return what becomes of a claim whose difference should be above 0.

    >>> judge(Estimate(0.2, 0.1, 0.3, 3)), judge(Estimate(0.2, None, None, 1))
    ('held', 'cannot be told')
    """
    if ours is None or ours.low is None or ours.high is None:
        return "cannot be told"
    if ours.low > 0:
        return "held"
    return "did not hold" if ours.high < 0 else "cannot be told"


def verdict(
    claim: str,
    values: np.ndarray | None,
    *,
    paper: float | None = None,
    unit: str = "AUC-sum",
    source: Literal["paper", "ours"] = "paper",
) -> Verdict:
    """Judge a claim by its difference per seed; None where a part of it could not be had."""
    ours = known_estimate(values)
    return Verdict(claim, source, judge(ours), unit, paper, ours)
