"""Traffic: who comes when, what could be shown, and how each item would be answered.

Nothing here depends on the arms: every draw belongs to a request and an item, so that two arms
that show the same item at the same place get the same answer.
"""

__all__ = ["Hour", "Traffic"]

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harmonrank_lab.experiments.online._config import OnlineConfig
from harmonrank_lab.worlds import World, draw_candidates

_HOUR = "hour"
_USERS, _WARMUP, _REQUESTS = 0, 1, 2


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
