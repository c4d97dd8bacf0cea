"""Checks of an experiment: sums over users, is the split as intended, do halves of an arm agree?"""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, erfc

from harmonrank.data import hash_bits
from harmonrank.support import UsageError
from harmonrank_lab.experiments.ab._result import AACheck, SampleRatio

Array = np.ndarray

SPLITS = 500
_ALARM = 0.001
_Z_ALARM = 3.2905
_LEVEL = 0.05
_CHUNK = 16_384
_MOST = 1e100
"""Of a part of the split, so that their sum is finite."""


class UserMoments(NamedTuple):
    """Sums over users of n (what is divided by), y (the outcomes) and their products.

    All arrays may have leading axes: one entry per group of users. y, yy and ny end in the
    outcomes.

    The mean outcome is the ratio of sums μ = Σy/Σn. Users are the independent unit, not rows: to
    first order μ̂ − μ is the mean of (y_u − μ n_u)/n̄, so Var μ̂ = U/(U−1) Σ(y_u − μ n_u)²/(Σn)².
    """

    users: Array
    n: Array
    nn: Array
    y: Array
    yy: Array
    ny: Array

    @property
    def mean(self) -> Array:
        """μ = Σy/Σn, (…, outcomes)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.y / self.n[..., None])

    @property
    def variance(self) -> Array:
        """The variance of the mean by the delta method, (…, outcomes)."""
        mean = self.mean
        squares = self.yy - 2 * mean * self.ny + mean**2 * self.nn[..., None]
        with np.errstate(invalid="ignore", divide="ignore"):
            scale = self.users / (self.users - 1) / self.n**2
            return np.asarray(np.maximum(squares, 0) * scale[..., None])

    def without(self, part: "UserMoments") -> "UserMoments":
        """Return the moments of the users that are not in a part of these."""
        return UserMoments(*(a - b for a, b in zip(self, part, strict=True)))


def moments_of(groups: Array, count: Array, sums: Array) -> UserMoments:
    """Sum up users by group.

    >>> moments_of(np.ones((1, 2)), np.array([2.0, 2.0]), np.array([[1.0], [0.0]])).mean
    array([[0.25]])

    Args:
        groups: (groups, users), 1 where the user belongs to the group.
        count: (users,), what is divided by: impressions, or 1 per user.
        sums: (users, outcomes).
    """
    weights = groups.astype(np.float64, copy=False)
    of_count = weights @ np.stack([np.ones_like(count), count, count**2], axis=1)
    users, n, nn = np.moveaxis(of_count, -1, 0)
    y, yy, ny = (weights @ of for of in (sums, sums**2, sums * count[:, None]))
    return UserMoments(users, n, nn, y, yy, ny)


def log_ratio(control: UserMoments, treated: UserMoments) -> tuple[Array, Array]:
    """Return log(μ_t/μ_c) and its standard error √(V_t/μ_t² + V_c/μ_c²), by the delta method.

    An outcome that never came in a group has no ratio: nan.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.log(treated.mean / control.mean)
        error = np.sqrt(treated.variance / treated.mean**2 + control.variance / control.mean**2)
    known = np.isfinite(ratio) & np.isfinite(error)
    return np.where(known, ratio, np.nan), np.where(known, error, np.nan)


def paired_log_ratio(control: Array, treated: Array) -> tuple[Array, Array]:
    """Return log(μ_t/μ_c) and its standard error for the same users under both.

    What the two share cancels user by user: to first order the log ratio moves by
    Σ_u (y_tu/Σy_t − y_cu/Σy_c), since the terms in n_u are the same on both sides.

    >>> paired_log_ratio(np.array([[1.0], [2.0]]), np.array([[2.0], [4.0]]))[1]
    array([0.])

    Args:
        control: (users, outcomes).
        treated: (users, outcomes), of the same users in the same order.
    """
    users = len(control)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.log(treated.sum(axis=0) / control.sum(axis=0))
        apart = treated / treated.sum(axis=0) - control / control.sum(axis=0)
        error = np.sqrt((apart**2).sum(axis=0) * users / (users - 1))
    return ratio, error


def two_sided_p(z: float | Array) -> Any:
    """Return P(|Z| ≥ |z|) for a standard normal Z.

    >>> round(float(two_sided_p(-1.959964)), 6)
    0.05
    """
    return erfc(np.abs(z) / sqrt(2))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted so that the chance of any false alarm stays below the level.

    The smallest is multiplied by their number, the next by one less, and none may fall below the
    one before it (Holm 1979). What is not a number stays so and does not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    known = sorted((p, i) for i, p in enumerate(p_values) if p == p)
    adjusted, highest = [float("nan")] * len(p_values), 0.0
    for place, (p, i) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - place)))
        adjusted[i] = highest
    return adjusted


def sample_ratio(users: Mapping[str, int], split: Mapping[str, float] | None) -> SampleRatio:
    """Test users per arm against the intended split: Σ (seen − expected)²/expected.

    A chi-square with one degree less than there are arms; the alarm is at p < .001.

    >>> sample_ratio({"base": 5000, "new": 5300}, None).alarm
    False
    >>> sample_ratio({"base": 50_000, "new": 53_000}, None).alarm
    True

    Args:
        users: Seen, per arm.
        split: Intended, in any unit; equal parts if left out.
    """
    wanted = dict.fromkeys(users, 1.0) if split is None else split
    if set(wanted) != set(users) or not all(0 < part <= _MOST for part in wanted.values()):
        raise UsageError(
            f"The split must give each arm ({', '.join(users)}) a part above 0 up to {_MOST:g}. "
            f"Got {', '.join(f'{arm}={part:g}' for arm, part in wanted.items())}."
        )
    shares = {arm: wanted[arm] / sum(wanted.values()) for arm in users}
    seen, expected = np.array(list(users.values())), np.array(list(shares.values()))
    expected = expected * seen.sum()
    x = float(((seen - expected) ** 2 / expected).sum())
    p = float(chdtrc(len(users) - 1, x))
    return SampleRatio(dict(users), shares, x, p, p < _ALARM)


def aa_check(
    outcomes: Sequence[str], count: np.ndarray, sums: np.ndarray, splits: int = SPLITS
) -> AACheck:
    """Halve the users of one arm again and again; see how often the halves seem to differ.

    Chance alone lets a share .05 ± 3.29 √(.05·.95/splits) of the p-values fall below .05. An
    outcome that hardly ever comes stays below that; only shares above it are an alarm.
    """
    p_values = aa_p_values(count, sums, splits)
    below = np.mean(p_values < _LEVEL, axis=0)
    away = _Z_ALARM * sqrt(_LEVEL * (1 - _LEVEL) / splits)
    usual = (max(_LEVEL - away, 0.0), _LEVEL + away)
    named = dict(zip(outcomes, below.tolist(), strict=True))
    return AACheck(splits, named, usual, bool(np.any(below > usual[1])))


def aa_p_values(count: np.ndarray, sums: np.ndarray, splits: int) -> np.ndarray:
    """Return the p-value of every split and outcome, (splits, outcomes); nan where it has none.

    Users are told apart by their place in the arrays.
    """
    parts, wholes = [], []
    for first in range(0, len(count), _CHUNK):
        rows = slice(first, first + _CHUNK)
        ids = np.arange(first, min(first + _CHUNK, len(count)))
        halves = hash_bits(ids, "aa", splits).T
        parts.append(moments_of(halves, count[rows], sums[rows]))
        wholes.append(moments_of(np.ones((1, len(ids))), count[rows], sums[rows]))
    half = _added(parts)
    ratio, error = log_ratio(_added(wholes).without(half), half)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = ratio / error
    return np.asarray(two_sided_p(z))


def _added(parts: Sequence[UserMoments]) -> UserMoments:
    return UserMoments(*(np.sum(sums, axis=0) for sums in zip(*parts, strict=True)))
