"""UserMoments: what must be known of many users to compare two groups of them."""

__all__ = ["UserMoments", "log_ratio", "moments_of", "paired_log_ratio"]

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class UserMoments:
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
        return UserMoments(
            self.users - part.users,
            self.n - part.n,
            self.nn - part.nn,
            self.y - part.y,
            self.yy - part.yy,
            self.ny - part.ny,
        )


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
    return UserMoments(
        users, n, nn, weights @ sums, weights @ sums**2, weights @ (sums * count[:, None])
    )


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
