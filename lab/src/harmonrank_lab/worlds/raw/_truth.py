"""Truth: how likely each objective is, given user, item, hour and scenario; blocks of rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from harmonrank.metrics import sigmoid
from harmonrank.support.storage import read_toml
from harmonrank_lab.upstream.calibrator import shift_to_mean

_USER, _ITEM, _CROSS, _SCENARIO, _HOUR = 0.27, 0.41, 0.10, 0.17, 0.05
"""Shares of a logit's variance; an objective's own part is taken from the first two."""

_TILT = 0.2
"""How far the directions of two objectives differ; at 0 all rank users and items alike."""

_SAMPLE_ROWS = 1 << 18
_ROWS = 1 << 18
"""A block ends with the user who fills it, so that memory does not grow with the log."""


def official(kind: str) -> dict[str, Any]:
    """Return what is known of an official log."""
    return read_toml(Path(__file__).parent / f"{kind}.toml", "an official log")


def zipf(count: int, exponent: float) -> np.ndarray:
    """Return shares that fall as rank^(−exponent).

    >>> zipf(3, 1.0).round(3)
    array([0.545, 0.273, 0.182])
    """
    weight = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    return np.asarray(weight / weight.sum())


def choose(rng: np.random.Generator, shares: np.ndarray, count: int) -> np.ndarray:
    """Draw categories by their shares, as int64."""
    edges = np.cumsum(shares)
    return np.searchsorted(edges / edges[-1], rng.random(count), side="right")


def log_normal(
    rng: np.random.Generator, signal: np.ndarray, *, middle: float, spread: float, told: float
) -> np.ndarray:
    """Return counts whose logarithm tells the share `told` of a standard normal signal."""
    noise = rng.standard_normal(len(signal))
    mixed = np.sqrt(told) * signal + np.sqrt(1 - told) * noise
    return np.asarray(middle * np.exp(spread * mixed))


def draw_vectors(
    rng: np.random.Generator, features: Mapping[str, tuple[np.ndarray, float]], told: float, D: int
) -> np.ndarray:
    """Return vectors of unit variance of which features explain the share `told`.

    Args:
        rng: Source of randomness.
        features: Category of every row, and how much that feature counts among the others.
        told: Share of the variance that the sum of category effects explains.
        D: Width of the vectors.
    """
    rows = len(next(iter(features.values()))[0])
    explained = np.zeros((rows, D))
    for category, weight in features.values():
        effects = rng.standard_normal((int(category.max()) + 1, D))
        explained += np.sqrt(weight) * effects[category]
    free = rng.standard_normal((rows, D))
    vectors = np.sqrt(told) * _standard(explained) + np.sqrt(1 - told) * _standard(free)
    return np.asarray(vectors)


def _standard(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


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

    @classmethod
    def named(cls, known: Mapping[str, Any]) -> tuple[Self, ...]:
        """Return the objectives of an official log."""
        return tuple(cls(name, *numbers) for name, numbers in known["objectives"].items())


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
        z += self.user_main[user]
        z += self.item_main[item]
        z += self.hour[hour]
        z += self.scenario[scenario]
        return np.asarray(z + self.intercept)

    def with_rates(
        self, user: np.ndarray, item: np.ndarray, hour: np.ndarray, scenario: np.ndarray
    ) -> "Truth":
        """Return the truth whose mean probability over these rows is each objective's rate."""
        z = self.logits(user, item, hour, scenario).astype(np.float64)
        shift = [shift_to_mean(z[:, m], o.rate) for m, o in enumerate(self.objectives)]
        return replace(self, intercept=self.intercept + np.array(shift, np.float32))


class RawWorld:
    """Users who come by a log-normal activity, and items shown by a popularity of rank^(−0.7)."""

    truth: Truth

    def _draw_traffic(self, rng: np.random.Generator, users: int, items: int) -> None:
        self.users, self.items = users, items
        self._activity = rng.lognormal(0.0, 0.6, users)
        self._activity /= self._activity.sum()
        self._popularity = rng.permutation(zipf(items, 0.7))

    def _truth_with_rates(
        self, rng: np.random.Generator, truth: Truth, *contexts: np.ndarray | None
    ) -> Truth:
        """Return the truth with the rates of its objectives, over shown rows at drawn contexts."""
        nothing = np.zeros(_SAMPLE_ROWS, np.int64)
        user, item = (choose(rng, s, _SAMPLE_ROWS) for s in (self._activity, self._popularity))
        others = (nothing if s is None else choose(rng, s, _SAMPLE_ROWS) for s in contexts)
        return truth.with_rates(user, item, *others)


def draw_truth(
    rng: np.random.Generator, objectives: Sequence[Objective], users: np.ndarray, items: np.ndarray,
    *, hours: int = 1, scenarios: int = 1,
) -> Truth:  # fmt: skip
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


@dataclass(frozen=True)
class LogFile:
    """One of a log's files: its path below the folder, and how many rows each user has in it."""

    path: str
    counts: np.ndarray
    index: int


@dataclass(frozen=True)
class Block:
    """Rows of one file, in its order.

    Attributes:
        frame: The columns of the official file.
        logits: (rows, M) true logits.
        labels: (rows, M) of 0 and 1.
    """

    file: LogFile
    frame: pl.DataFrame
    logits: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class BlockUsers:
    """The user of every row of a block, and the generator to draw the rest with."""

    file: LogFile
    user: np.ndarray
    rng: np.random.Generator


def blocks(file: LogFile, seed: int) -> Iterator[BlockUsers]:
    """Yield the rows of a file user by user; each block has a generator of its own."""
    ends = np.cumsum(file.counts)
    start = number = 0
    while start < len(ends):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _ROWS, side="right")))
        user = np.repeat(np.arange(start, stop), file.counts[start:stop])
        if len(user):
            yield BlockUsers(file, user, np.random.default_rng([seed, 7, file.index, number]))
        start, number = stop, number + 1


def feedback(rng: np.random.Generator, z: np.ndarray, nested: int = 2) -> np.ndarray:
    """Draw labels of true logits; the first `nested` objectives share one draw.

    So a long view is nearly always a click too, and each is as likely as its logit says.
    """
    draw = rng.random(z.shape, dtype=np.float32)
    draw[:, 1:nested] = draw[:, :1]
    return np.asarray(draw < sigmoid(z))
