"""The rules of a simulated experiment, what it came to, and who comes when.

Nothing of the traffic depends on the arms: every draw belongs to a request and an item, so that
two arms that show the same item at the same place get the same answer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl

from harmonrank.fusion import METHODS
from harmonrank.support import UsageError, did_you_mean
from harmonrank.support.options import Count, Nonnegative, check_fields
from harmonrank.support.storage import decode
from harmonrank_lab.experiments.ab import Analysis, Lift
from harmonrank_lab.experiments.ab._result import with_nan
from harmonrank_lab.worlds import World, draw_candidates

if TYPE_CHECKING:
    from harmonrank.cli.parts import Show

BASE = "base"
"""The arm that lifts are measured against."""

ARMS = {BASE: "mbce", "rl": "reinforce", "ours": "harmonrank"}
"""The arms of the paper's experiment and the method of each."""

DELAYS = {"click": 0.0, "long_view": 0.05, "like": 0.1, "comment": 0.25, "share": 0.25}
DELAYS |= {"follow": 0.5, "buy": 2.0}
"""Mean hours from an impression to its label, exponential; an objective not named here has 0.5."""

_OTHER_DELAY = 0.5
# A share e⁻⁴ = 1.8 % of the positives comes later than this many mean delays, and is lost.
_PATIENCE = 4

_HOUR = "hour"
_USERS, _WARMUP, _REQUESTS = 0, 1, 2


@dataclass(frozen=True)
class OnlineConfig:
    """How many, how long, and by which rules.

    Attributes:
        arms: Name of each arm and its method; the first is the control.
        aa: Also run an arm that shows what the control's model says.
        users: They stay in their arm, and keep their context but for the hour.
        hours: Per day.
        requests_per_hour: On average; they follow the world's share of each hour of the day.
        candidates: Per request.
        top_k: Shown per request.
        warmup_hours: Traffic of random order before the first day, which all arms learn from.
        retrain_hours: An arm learns again after so many hours.
        window_rows: The newest matured rows of its log that an arm learns from.
        delays: Mean hours to a label, per objective; see `DELAYS`.
        activity: Spread of the log of how often a user comes.
        options: Options of an arm's method, by the name of the arm.
    """

    users: Count = 100_000
    days: Count = 5
    hours: Count = 24
    requests_per_hour: Count = 10_000
    candidates: Count = 20
    top_k: Count = 5
    arms: Mapping[str, str] = field(default_factory=lambda: dict(ARMS))
    aa: bool = True
    warmup_hours: Count = 8
    retrain_hours: Count = 1
    window_rows: Count = 250_000
    delays: Mapping[str, float] = field(default_factory=dict)
    activity: Nonnegative = 1.0
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields("the online experiment", self)
        if self.candidates < self.top_k:
            raise UsageError(
                f"`candidates` must be at least `top_k`, {self.top_k}. Got {self.candidates}."
            )
        if len(self.arms) + self.aa < 2:
            raise UsageError(f"`arms` must name at least two arms. Got {list(self.arms)}.")
        named = {"arm": (self.options, self.arms), "method": (self.arms.values(), METHODS)}
        for what, (names, known) in named.items():
            for name in (n for n in names if n not in known):
                raise UsageError(f"There is no {what} '{name}'. {did_you_mean(name, known)}")

    @property
    def base(self) -> str:
        """The arm that lifts are measured against."""
        return next(iter(self.arms))

    @property
    def aa_arm(self) -> str | None:
        """The arm that shows what the control's model says."""
        return f"{self.base}-again" if self.aa else None

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups of users, the A/A arm last."""
        return (*self.arms, *([self.aa_arm] if self.aa_arm else []))

    def examination(self) -> np.ndarray:
        """Return the chance that the item at place k is looked at: 1/log₂(1 + k), k from 1.

        >>> OnlineConfig(top_k=3).examination().round(3)
        array([1.   , 0.631, 0.5  ])
        """
        return np.asarray(1 / np.log2(1 + np.arange(1, self.top_k + 1)))

    def delay(self, objectives: tuple[str, ...]) -> np.ndarray:
        """Return the mean delay of each objective, in hours."""
        means = {**DELAYS, **self.delays}
        return np.array([means.get(name, _OTHER_DELAY) for name in objectives])

    def wait(self, objectives: tuple[str, ...]) -> int:
        """Return after how many hours the labels of a row are taken as they are."""
        return ceil(_PATIENCE * float(self.delay(objectives).max()))


@dataclass(frozen=True)
class HourEnded:
    """An hour of the experiment is over; `hour` counts from 0."""

    hour: int
    hours: int

    def shown_by(self, show: "Show") -> None:
        """Tell a person."""
        show.advance("hours ", self.hour + 1, self.hours)


@dataclass(frozen=True)
class OnlineResult:
    """A simulated experiment.

    Attributes:
        arms: Name of each arm and its method.
        settings: The config's numbers, the examination of each place and the wait for labels.
        requests: Of the experiment.
        analysis: What a platform would measure: each user saw one arm. All lifts in percent.
        exact: What only a simulation knows: every arm ranks all requests, and answers are counted
            by their true chance. Each arm's models still learned from its own users alone.
        log: A row per user and day, as `harmonrank lab ab analyse` reads it; not in the JSON.
        seconds: How long it took.
    """

    world: str
    seed: int
    objectives: tuple[str, ...]
    arms: Mapping[str, str]
    settings: Mapping[str, Any]
    requests: int
    analysis: Analysis
    exact: tuple[Lift, ...]
    log: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    seconds: float = field(default=0.0, compare=False)

    def exact_lift(self, arm: str, outcome: str) -> Lift:
        """Return the exact lift of one arm and outcome."""
        return next(x for x in self.exact if (x.arm, x.outcome) == (arm, outcome))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        parts = asdict(replace(self, log=None))
        return {name: value for name, value in parts.items() if name != "log"}

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Self:
        """Build a result, without its log, from what `to_dict` returned."""
        return decode(with_nan(parts), cls, "A simulated experiment")


@dataclass(frozen=True, eq=False)
class Hour:
    """The requests of an hour.

    Attributes:
        number: From 0; below 0 before the experiment.
        user: (requests,).
        context: One array per feature, (requests,).
        scores: (requests, items, objectives), what methods see.
        chance: (requests, items, objectives), how likely each answer is.
        draw: (requests, items, objectives), uniform: the answer comes if it is below the chance.
        glance: (requests, places), uniform: a place is looked at if it is below the curve.
    """

    number: int
    user: np.ndarray
    context: dict[str, np.ndarray]
    scores: np.ndarray
    chance: np.ndarray
    draw: np.ndarray
    glance: np.ndarray


class Traffic:
    """Users with a context and an activity that stay, and requests hour by hour.

    The day's hours are the world's `hour` feature, where it has one: requests follow its shares,
    so over a day the contexts are those of the world.
    """

    def __init__(self, world: World, config: OnlineConfig, seed: int) -> None:
        self._world, self._config, self._seed = world, config, seed
        rng = np.random.default_rng([seed, _USERS])
        self._context = {
            name: rng.choice(len(share), config.users, p=share).astype(np.int16)
            for name, share in world.categories.items()
        }
        activity = np.exp(config.activity * rng.standard_normal(config.users))
        self._reach = np.cumsum(activity) / activity.sum()

    def warmup(self) -> Iterator[Hour]:
        """Yield the hours before the experiment."""
        for index in range(self._config.warmup_hours):
            yield self._hour(index, _WARMUP)

    def hours(self) -> Iterator[Hour]:
        """Yield the hours of the experiment."""
        for index in range(self._hours):
            yield self._hour(index, _REQUESTS)

    def _hour(self, index: int, kind: int) -> Hour:
        config, rng = self._config, np.random.default_rng([self._seed, kind, index])
        number = index if kind == _REQUESTS else index - config.warmup_hours
        clock, volume = self._clock(number)
        requests = max(1, round(config.requests_per_hour * volume))
        user = np.searchsorted(self._reach, rng.random(requests), side="right")
        user = np.minimum(user, config.users - 1)
        context = {name: values[user] for name, values in self._context.items()}
        if clock is not None:
            context[_HOUR] = np.full(requests, clock, np.int16)
        time = np.full(requests, max(number, 0) / self._hours)
        items = draw_candidates(self._world, context, time, config.candidates, rng)
        draw = rng.random(items.chance.shape)
        glance = rng.random((requests, config.top_k))
        return Hour(number, user, context, items.scores, items.chance, draw, glance)

    @property
    def _hours(self) -> int:
        return self._config.days * self._config.hours

    def _clock(self, number: int) -> tuple[int | None, float]:
        """Return the hour's category and its traffic, as a multiple of the mean hour's."""
        share = self._world.categories.get(_HOUR)
        if share is None:
            return None, 1.0
        clocks = np.arange(self._config.hours) * len(share) // self._config.hours
        clock = int(clocks[number % self._config.hours])
        return clock, float(share[clock] / share[clocks].mean())
