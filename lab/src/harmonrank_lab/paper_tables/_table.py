"""PaperTable: the paper's figures, what came out here, and what becomes of its claims.

The rule is one for all: a claim is a difference that should be above 0. Its 95 % interval comes
from seeds, which in a world draw other rows too; on a folder, whose rows stay the same, resampled
requests are added. All above 0: held. All below: did not hold. Else, or with one seed, which
says nothing about chance: cannot be told.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any, Literal, Self

import numpy as np
from msgspec import Meta
from scipy.special import stdtrit

from harmonrank.support.storage import decode, read_toml

Outcome = Literal["held", "did not hold", "cannot be told"]
Point = Annotated[list[float], Meta(min_length=2, max_length=2)]
Area = Annotated[list[float | None], Meta(min_length=3, max_length=3)]
Epoch = Annotated[list[float | None], Meta(min_length=3, max_length=3)]
"""Loss, validation AUC-sum and share of items in gradient."""

LEVEL = 0.95

FIGURES = read_toml(Path(__file__).parent / "figures.toml", "figures of the paper")
"""The paper's own figures."""


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
