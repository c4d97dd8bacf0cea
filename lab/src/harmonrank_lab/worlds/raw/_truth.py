"""Truth: how likely each objective is, given user, item, hour and scenario."""

__all__ = ["Objective", "Truth", "draw_truth", "probability"]

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

_USER, _ITEM, _CROSS, _SCENARIO, _HOUR = 0.27, 0.41, 0.10, 0.17, 0.05
"""Shares of a logit's variance; an objective's own part is taken from the first two."""

_TILT = 0.2
"""How far the directions of two objectives differ; at 0 all rank users and items alike."""


@dataclass(frozen=True)
class Objective:
    """A kind of feedback.

    Attributes:
        name: What it is called.
        rate: How often it happens.
        spread: Standard deviation of its logit.
        own: Share of a logit's variance that no other objective shares, half user, half item.
    """

    name: str
    rate: float
    spread: float
    own: float


@dataclass(frozen=True)
class Truth:
    """The true logits of M objectives.

    z_m = b_m + L_m·u + R_m·v + Σ_d W_md u_d v_d + own user and item parts + hour + scenario,
    with one vector u per user and v per item that all objectives share. The sums over a user's
    and an item's own terms are stored, (users, M) and (items, M).
    """

    objectives: tuple[Objective, ...]
    user_main: np.ndarray
    item_main: np.ndarray
    users: np.ndarray
    items: np.ndarray
    cross: np.ndarray
    hour: np.ndarray
    scenario: np.ndarray
    intercept: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """What the objectives are called."""
        return tuple(o.name for o in self.objectives)

    def logits(
        self, user: np.ndarray, item: np.ndarray, hour: np.ndarray, scenario: np.ndarray
    ) -> np.ndarray:
        """Return z, (rows, M) float32."""
        z = (self.users[user] * self.items[item]) @ self.cross  # (rows, M)
        for table, index in (
            (self.user_main, user),
            (self.item_main, item),
            (self.hour, hour),
            (self.scenario, scenario),
        ):
            z += table[index]
        z += self.intercept
        return np.asarray(z)

    def with_rates(
        self, user: np.ndarray, item: np.ndarray, hour: np.ndarray, scenario: np.ndarray
    ) -> "Truth":
        """Return the truth whose mean probability over these rows is each objective's rate."""
        z = self.logits(user, item, hour, scenario).astype(np.float64)
        shift = [_shift(z[:, m], o.rate) for m, o in enumerate(self.objectives)]
        return replace(self, intercept=self.intercept + np.array(shift, np.float32))


def probability(z: np.ndarray) -> np.ndarray:
    """Return sigmoid(z).

    >>> probability(np.zeros(1, np.float32))
    array([0.5], dtype=float32)
    """
    return np.asarray(1 / (1 + np.exp(-z)))


def _shift(z: np.ndarray, rate: float) -> float:
    """Return b with mean sigmoid(z + b) = rate, by Newton's steps on the logit of the mean.

    That is nearly a straight line in b, so eight steps are plenty.
    """
    b = 0.0
    for _ in range(8):
        p = probability(z + b)
        mean = p.mean()
        slope = (p * (1 - p)).mean() / (mean * (1 - mean))
        b += float(np.log(rate / (1 - rate)) - np.log(mean / (1 - mean))) / float(slope)
    return b


def draw_truth(
    rng: np.random.Generator,
    objectives: Sequence[Objective],
    users: np.ndarray,
    items: np.ndarray,
    *,
    hours: int = 1,
    scenarios: int = 1,
) -> Truth:
    """Draw loadings and own parts around given vectors of unit variance, (users, D), (items, D).

    Directions of the objectives share their first axis, how much a user engages and how good an
    item is, and tilt away from each other along the others.
    """
    M, D = len(objectives), users.shape[1]
    spread = np.array([o.spread for o in objectives])
    # Without a clock or scenarios, their share goes to users and items.
    context = (_HOUR if hours > 1 else 0) + (_SCENARIO if scenarios > 1 else 0)
    scale = (1 - context) / (1 - _HOUR - _SCENARIO)
    own = np.array([o.own for o in objectives])
    cross = _directions(rng, M, D, first=1.0) * np.sqrt(scale * _CROSS)

    def main(vectors: np.ndarray, share: float) -> np.ndarray:
        loadings = _directions(rng, M, D, first=1.5) * np.sqrt(scale * share - own / 2)[:, None]
        free = np.sqrt(own / 2) * rng.standard_normal((len(vectors), M))
        return np.asarray((vectors @ loadings.T + free) * spread, np.float32)

    def effects(count: int, share: float) -> np.ndarray:
        # Half of an effect is common to all objectives.
        mixed = rng.standard_normal((count, 1)) + rng.standard_normal((count, M))
        return np.asarray(mixed * np.sqrt(share / 2) * spread * (count > 1), np.float32)

    return Truth(
        objectives=tuple(objectives),
        user_main=main(users, _USER),
        item_main=main(items, _ITEM),
        users=users.astype(np.float32),
        items=items.astype(np.float32),
        cross=(cross * spread[:, None]).T.astype(np.float32),
        hour=_smooth(effects(hours, _HOUR)),
        scenario=effects(scenarios, _SCENARIO),
        intercept=np.zeros(M, np.float32),
    )


def _directions(rng: np.random.Generator, M: int, D: int, *, first: float) -> np.ndarray:
    common = np.eye(1, D)[0] * first + 0.5 * rng.standard_normal(D)
    each = common + _TILT * rng.standard_normal((M, D))
    return np.asarray(each / np.linalg.norm(each, axis=1, keepdims=True))


def _smooth(effects: np.ndarray) -> np.ndarray:
    # Neighbouring hours are alike; the average of three would shrink the spread by √3.
    if len(effects) < 3:
        return effects
    around = np.roll(effects, 1, 0) + effects + np.roll(effects, -1, 0)
    return np.asarray(around / np.float32(np.sqrt(3)))
