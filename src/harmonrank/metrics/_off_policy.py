"""Off-policy values: the value of a ranking, estimated from a log that another ranking made.

The estimates are eqs. 6, 7, 8 and 9 of docs/position.md.
"""

from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from harmonrank.metrics._inputs import (
    FloatArray,
    check_groups,
    check_labels,
    check_weights,
)
from harmonrank.metrics._intervals import Interval, request_influence
from harmonrank.support.errors import UsageError

_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class LoggedValues:
    """Sums of every request, from which both estimates of a value are computed.

    Attributes:
        ips: (requests, M), Σ d y/q.
        mass: (requests,), Σ d θ/q: what `ips` would be if every shown row had an event.
        total: (requests,), Σ d.
        robust: (requests, M), Σ d (p̂ + (y − θ p̂)/q).
        effective: (M,), the number of equally weighted events with the same information.
        support: Share of Σ d on rows that could have been looked at in the log.
    """

    ips: FloatArray
    mass: FloatArray
    total: FloatArray
    robust: FloatArray
    effective: FloatArray
    support: float

    def estimates(self) -> tuple[FloatArray, FloatArray]:
        """Return the self-normalised and the doubly robust value of each objective, (M,)."""
        share = self.ips.mean(axis=0) / max(self.mass.mean(), np.finfo(float).tiny)
        return self.total.mean() * share, self.robust.mean(axis=0)

    def influences(self) -> tuple[FloatArray, FloatArray]:
        """Return how far each request moves these, (requests, M), with mean 0."""
        mass, total = max(self.mass.mean(), np.finfo(float).tiny), self.total.mean()
        share = self.ips.mean(axis=0) / mass
        own = (total / mass) * (self.ips - share * self.mass[:, None])
        own += share * (self.total - total)[:, None]
        return own, self.robust - self.robust.mean(axis=0)

    def intervals(self) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
        """Return both values of each objective with intervals, requests as the unit.

        V exp(± z e/V), as sums of few events are skewed; V ± z e where V is not above 0. z is wider
        than the normal one by what Student's is with as many degrees of freedom as events.
        """
        wider = _student(self.effective)
        first, second = (
            tuple(
                _interval(float(v), float(r))
                for v, r in zip(values, wider * _error(moved), strict=True)
            )
            for values, moved in zip(self.estimates(), self.influences(), strict=True)
        )
        return first, second

    def lifts(self, current: "LoggedValues") -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
        """Return the change against another ranking of the same requests, in percent.

        exp(log ratio ± z e) − 1, with e by the delta method on differences request by request and z
        as for `intervals`; nan where a value is not above 0.
        """
        return _lifts(self, current, 0), _lifts(self, current, 1)


def _lifts(new: LoggedValues, current: LoggedValues, kind: int) -> tuple[Interval, ...]:
    a, b = new.estimates()[kind], current.estimates()[kind]
    known = (a > 0) & (b > 0)
    top, bottom = np.where(known, a, 1.0), np.where(known, b, 1.0)
    moved = new.influences()[kind] / top - current.influences()[kind] / bottom
    events = np.minimum(new.effective, current.effective)
    log, reach = np.log(top / bottom), _student(events) * _error(moved)
    ends = [np.where(known, 100 * np.expm1(log + r), np.nan) for r in (0 * reach, -reach, reach)]
    return tuple(
        Interval(float(v), float(lo), float(hi), _LEVEL) for v, lo, hi in zip(*ends, strict=True)
    )


def _error(influence: FloatArray) -> FloatArray:
    """Return the standard error of the mean over requests."""
    requests = len(influence)
    if requests < 2:
        return np.full(influence.shape[1], np.nan)
    error: FloatArray = np.sqrt((influence**2).sum(axis=0) / requests / (requests - 1))
    return error


def _student(events: FloatArray) -> FloatArray:
    """Return Student's quantile by its first term beyond the normal one, z + (z³ + z)/4ν."""
    z = NormalDist().inv_cdf(0.5 + 0.5 * _LEVEL)
    wider: FloatArray = z + (z**3 + z) / (4 * np.maximum(events, 1.0))
    return wider


def _interval(value: float, reach: float) -> Interval:
    if not value > 0:
        return Interval(value, value - reach, value + reach, _LEVEL)
    factor = float(np.exp(min(reach / value, 100.0))) if reach == reach else reach
    return Interval(value, value / factor, value * factor, _LEVEL)


def logged_values(
    gains: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike,
    *,
    looked: ArrayLike,
    propensity: ArrayLike,
    predicted: ArrayLike,
) -> LoggedValues:
    """Return the sums of each request for estimates of the value of a ranking.

    >>> none, half = [[0], [0]], [0.5, 1.0]
    >>> rows = [1.0, 0.0], [[1], [0]], ["a", "a"]
    >>> logged_values(*rows, looked=half, propensity=half, predicted=none).estimates()
    (array([2.]), array([2.]))

    Args:
        gains: d, (n,), the chance that the new ranking's place of each row is looked at.
        labels: y, (n, M), feedback as logged.
        groups: (n,) the request of each row.
        looked: θ, (n,), the chance that the place at which the row was shown is looked at; 0 if it
            was not shown.
        propensity: q, (n,), the chance that the row would be looked at, over all rankings that the
            logging policy might have made; 0 if it never would.
        predicted: p̂, (n, M), the chance of each feedback, if the row is looked at.
    """
    d = check_weights(gains, len(np.atleast_1d(np.asarray(gains))), "gains")
    y = check_labels(labels, len(d)).astype(np.float64)
    theta, q = (
        check_weights(looked, len(d), "looked"),
        check_weights(propensity, len(d), "propensity"),
    )
    p = np.asarray(predicted, dtype=np.float64)
    if p.shape != y.shape or not np.isfinite(p).all():
        raise UsageError(f"`predicted` must be finite and of shape {y.shape}. Got {p.shape}.")
    codes, _ = check_groups(groups, len(d))
    w = np.divide(d, q, out=np.zeros(len(d)), where=q > 0)

    by_request = partial(request_influence, groups=codes)
    events = w[:, None] * y
    square = (events**2).sum(axis=0)
    effective = np.divide(
        events.sum(axis=0) ** 2, square, out=np.zeros(y.shape[1]), where=square > 0
    )
    return LoggedValues(
        ips=by_request(events),
        mass=by_request((w * theta)[:, None])[:, 0],
        total=by_request(d[:, None])[:, 0],
        robust=by_request(d[:, None] * p + w[:, None] * (y - theta[:, None] * p)),
        effective=effective,
        support=float(d[q > 0].sum() / d.sum()) if d.sum() > 0 else 0.0,
    )
