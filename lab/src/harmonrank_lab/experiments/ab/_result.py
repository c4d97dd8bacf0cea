"""Analysis: what an experiment's log says, as plain numbers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from harmonrank.support.storage import decode

_NAN = float("nan")


@dataclass(frozen=True)
class Mean:
    """The mean outcome of an arm: per impression or per user, and its standard error."""

    arm: str
    outcome: str
    users: int
    mean: float
    error: float


@dataclass(frozen=True)
class Lift:
    """An arm's mean outcome over that of the control; all but the p-values in percent.

    Attributes:
        low: Of the interval.
        high: Of the interval.
        p: Two-sided, for no lift at all.
        p_holm: The same, adjusted for the number of lifts that were looked at; nan for an A/A arm.
        detectable: The lift that a test at this level would find four times out of five.
        verdict: 'better' or 'worse' if the lift holds after the adjustment, by whether the outcome
            is wanted; 'unclear' if it does not; 'A/A' for an arm that is the same as the control.
        change: The arm's mean minus the control's, in the unit of the outcome.
        change_low: Of its interval.
        change_high: Of its interval.
    """

    arm: str
    outcome: str
    lift: float
    low: float
    high: float
    p: float
    p_holm: float
    detectable: float
    verdict: Literal["better", "worse", "unclear", "A/A"] = "unclear"
    change: float = _NAN
    change_low: float = _NAN
    change_high: float = _NAN


@dataclass(frozen=True)
class SampleRatio:
    """Whether the arms have the users that the split meant them to have.

    Attributes:
        users: Per arm.
        intended: Share of each arm.
        alarm: The counts are too far off for chance: do not trust the lifts.
    """

    users: Mapping[str, int]
    intended: Mapping[str, float]
    chi_square: float
    p: float
    alarm: bool


@dataclass(frozen=True)
class AACheck:
    """How often halves of the control differ, which by chance should be one time in twenty.

    Attributes:
        splits: How many times the control's users were halved by another hash.
        below: Per outcome, the share of p-values below .05.
        usual: The range that the share leaves by chance once in a thousand checks.
        alarm: Some share is above it: intervals are too narrow, do not trust the p-values.
    """

    splits: int
    below: Mapping[str, float]
    usual: tuple[float, float]
    alarm: bool


@dataclass(frozen=True)
class Analysis:
    """What an experiment's log says.

    Attributes:
        control: The arm that lifts are measured against.
        aa_arm: The arm that is known to be the same as the control, if there is one.
        per: Outcomes are counted per 'impression' or per 'user'.
        level: Of the intervals.
        crossed_users: Users seen in more than one arm, who were left out.
        skipped_rows: Rows without a user or an arm, which were left out.
        unwanted: Outcomes of which less is better.
    """

    outcomes: tuple[str, ...]
    arms: tuple[str, ...]
    control: str
    aa_arm: str | None
    per: str
    level: float
    rows: int
    crossed_users: int
    skipped_rows: int
    means: tuple[Mean, ...]
    lifts: tuple[Lift, ...]
    sample_ratio: SampleRatio
    aa: AACheck
    unwanted: tuple[str, ...] = ()

    def lift(self, arm: str, outcome: str) -> Lift:
        """Return the lift of one arm and outcome."""
        return next(x for x in self.lifts if (x.arm, x.outcome) == (arm, outcome))

    def mean(self, arm: str, outcome: str) -> Mean:
        """Return the mean outcome of one arm."""
        return next(x for x in self.means if (x.arm, x.outcome) == (arm, outcome))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        return asdict(self)

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Self:
        """Build an analysis from what `to_dict` returned, after a way through JSON too."""
        return decode(with_nan(parts), cls, "An analysis")


def with_nan(parts: Any) -> Any:
    """Put back the nan for which JSON has no word; only an A/A arm may be none."""
    if isinstance(parts, Mapping):
        return {k: part if k == "aa_arm" else with_nan(part) for k, part in parts.items()}
    if isinstance(parts, list | tuple):
        return [with_nan(part) for part in parts]
    return _NAN if parts is None else parts
