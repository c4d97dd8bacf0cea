"""Newton's method for penalised likelihoods, with the evidence for how strong the penalty is.

Several problems are climbed side by side, M of D coefficients each, as one pass over the rows
serves them all. What is known of the rows is a `Likelihood` at a point: sums, which blocks and
workers can add. A step goes to the top of the quadratic there under a normal `Prior`; a problem
whose step would make its posterior smaller takes half of it, and half again. So no step is ever
accepted that is worse, and what has not converged says so.

MacKay's (1992) update λ = γ/Σ(θ − mean)² maximises the evidence for the precision λ of a group of
coefficients, γ being the number of them that the data decide: eq. 5 of docs/default-method.md.
"""

__all__ = [
    "MOST",
    "SINGLE_ROUNDING",
    "Likelihood",
    "Maximum",
    "Prior",
    "Rounds",
    "Step",
    "maximise",
    "maximising",
    "settled",
]

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from warnings import warn

import numpy as np

from harmonrank.support.errors import ConvergenceWarning

_LEAST, MOST = 1e-2, 1e6
"""The largest precision that the evidence decides on; such coefficients are of no use."""
_FREE = 1e-6  # The precision of a coefficient that nothing shrinks.
_HALVINGS = 40
_ROUNDING = 1e-9  # Of a log-likelihood in float64: so much less may be what its sum has lost.
SINGLE_ROUNDING = 1e-3
"""In nats, of one whose terms are float32; it is far below what rows can tell."""


class Likelihood(NamedTuple):
    """Log-likelihoods at a point, and how they change there.

    Attributes:
        value: (M,).
        slope: (M, D), gradients.
        curvature: (M, D, D), negative Hessians; where steps do without, whatever they need.
    """

    value: np.ndarray
    slope: np.ndarray
    curvature: Any = None


@dataclass(frozen=True)
class Prior:
    """Independent normal coefficients; those of a group share a precision.

    Attributes:
        mean: (D,) or (M, D).
        precision: (groups,).
        group: (D,) or (M, D) of each coefficient; −1 for one that is free.
    """

    mean: np.ndarray
    precision: np.ndarray
    group: np.ndarray

    @property
    def decay(self) -> np.ndarray:
        """The precision of each coefficient."""
        return np.where(self.group >= 0, self.precision[self.group], _FREE)

    def penalty(self, theta: np.ndarray) -> np.ndarray:
        """Return what the prior takes off the log-likelihood of each problem, (M,)."""
        lost: np.ndarray = 0.5 * (self.decay * (theta - self.mean) ** 2).sum(axis=1)
        return lost

    def top(self, theta: np.ndarray, there: Likelihood) -> tuple[np.ndarray, np.ndarray]:
        """Return where the posterior of the quadratic at theta is largest, and its variances."""
        decay = np.broadcast_to(self.decay, theta.shape)
        covariance = np.linalg.inv(there.curvature + decay[:, :, None] * np.eye(theta.shape[1]))
        pull = there.slope - decay * (theta - self.mean)
        step = (covariance @ pull[:, :, None])[:, :, 0]
        variance = np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 1e-30)
        return theta + step, variance

    def updated(self, theta: np.ndarray, variance: np.ndarray, kept: int = 0) -> "Prior":
        """Return the prior under which coefficients with these posteriors are likeliest.

        Args:
            theta: (M, D) posterior means.
            variance: (M, D) posterior variances.
            kept: So many groups keep their precision.
        """
        group = np.broadcast_to(self.group, theta.shape)
        known, energy = 1 - self.decay * variance, (theta - self.mean) ** 2
        precision = self.precision.copy()
        for g in range(kept, len(precision)):
            own = group == g
            if own.any():
                new = known[own].sum() / max(energy[own].sum(), 1e-12)
                precision[g] = np.clip(new, _LEAST, MOST)
        return replace(self, precision=precision)


class Step(NamedTuple):
    """Where to go from a point.

    Attributes:
        target: (M, D).
        penalty: What is taken off the log-likelihood of each problem at a point, (M,).
        last: Whether a problem that arrives there is done; (M,) or one for all.
    """

    target: np.ndarray
    penalty: Callable[[np.ndarray], np.ndarray]
    last: np.ndarray | bool


@dataclass(frozen=True)
class Rounds:
    """When a prior and the coefficients under it are settled.

    Attributes:
        most: How many rounds there may be.
        enough: The largest move of a coefficient, in posterior standard deviations.
        steady: The largest change of the logarithm of a precision that matters.
        near: A first move beyond this has left the quadratic, and settles nothing.
    """

    most: int
    enough: float
    steady: float = np.inf
    near: float = np.inf


def settled(
    start: np.ndarray,
    prior: Prior,
    top: Callable[[Prior], tuple[np.ndarray, np.ndarray]],
    update: Callable[[Prior, np.ndarray, np.ndarray], Prior],
    rounds: Rounds,
) -> tuple[Step, Prior, float]:
    """Return a step to coefficients and a prior that fit each other, and how far it goes.

    Precisions converge slowly, but rows need not be looked at: near the top the quadratic does
    for them. The step is the top under the last prior but one, and how far it goes is its largest
    change, in posterior standard deviations.

    Args:
        start: (M, D) coefficients.
        prior: The present one.
        top: Coefficients and their posterior variances under a prior.
        update: The prior that fits these.
        rounds: When that is settled.
    """
    theta = start
    for number in range(rounds.most):
        used, before = prior, theta
        theta, variance = top(used)
        prior, deviation = update(used, theta, variance), np.sqrt(variance)
        far, moved = (float((np.abs(theta - t) / deviation).max()) for t in (start, before))
        open_ = used.precision < MOST / 10
        drift = np.abs(np.log(prior.precision / used.precision))[open_].max(initial=0)
        if (number == 0 and far > rounds.near) or (moved < rounds.enough and drift < rounds.steady):
            break
    return Step(theta, used.penalty, False), prior, far


class Maximum(NamedTuple):
    """Where an ascent ended.

    Attributes:
        theta: (M, D).
        there: The likelihood at it.
        converged: (M,) whether the last step was as short as was asked for.
    """

    theta: np.ndarray
    there: Likelihood
    converged: np.ndarray

    def checked(self, what: str) -> "Maximum":
        """Return it, after a warning if some problem has not converged."""
        if not self.converged.all():
            count = f"{int((~self.converged).sum())} of {len(self.converged)}"
            warn(f"{what} did not converge ({count}).", ConvergenceWarning, stacklevel=3)
        return self


def maximise(
    look: Callable[[np.ndarray], Likelihood],
    start: np.ndarray,
    propose: Callable[[np.ndarray, Likelihood], Step | None],
    steps: int,
    rounding: float = 0.0,
) -> Maximum:
    """Climb from (M, D) coefficients to the top of what `look` sees less a penalty.

    >>> def look(theta):  # 3 log σ(θ) + log σ(−θ), largest where σ(θ) = ¾
    ...     p = 1 / (1 + np.exp(-theta))
    ...     value, curvature = 3 * np.log(p[0]) + np.log(1 - p[0]), 4 * p * (1 - p)
    ...     return Likelihood(value, 3 - 4 * p, curvature[None])
    >>> free = Prior(np.zeros(1), np.zeros(1), np.array([-1]))
    >>> def propose(theta, there):
    ...     target, _ = free.top(theta, there)
    ...     return Step(target, free.penalty, abs(target - theta)[:, 0] < 1e-6)
    >>> maximum = maximise(look, np.zeros((1, 1)), propose, 20)
    >>> np.exp(maximum.theta).round(4), maximum.converged
    (array([[3.]]), array([ True]))

    Args:
        look: The likelihood at a point.
        start: Where to begin.
        propose: The step from a point with this likelihood; None at the top.
        steps: How many there may be.
        rounding: Nats by which a posterior may be smaller for rounding alone.
    """
    asking = maximising(start, propose, steps, rounding)
    try:
        theta = next(asking)
        while True:
            theta = asking.send(look(theta))
    except StopIteration as ended:
        maximum: Maximum = ended.value
        return maximum


def maximising(
    start: np.ndarray,
    propose: Callable[[np.ndarray, Likelihood], Step | None],
    steps: int,
    rounding: float = 0.0,
    there: Likelihood | None = None,
) -> Generator[np.ndarray, Likelihood, Maximum]:
    """Climb as `maximise` does, but yield each point and be sent the likelihood there.

    So one pass over the rows can serve several ascents. `there` is the likelihood at the start,
    where it is known.
    """
    theta = start
    there = (yield theta) if there is None else there
    done = np.zeros(len(theta), bool)
    for _ in range(steps):
        step = propose(theta, there)
        if step is None:
            return Maximum(theta, there, np.ones_like(done))
        before = there.value - step.penalty(theta)
        least = before - _ROUNDING * np.maximum(np.abs(before), 1.0) - rounding
        share = np.ones(len(theta))
        for _ in range(_HALVINGS):
            whole = share[:, None] == 1
            trial = np.where(whole, step.target, theta + share[:, None] * (step.target - theta))
            new = yield trial
            worse = ~(new.value - step.penalty(trial) >= least)
            if not worse.any():
                break
            share[worse] /= 2
        # A problem that found nothing better stays where it is.
        theta, there = np.where(worse[:, None], theta, trial), _chosen(worse, there, new)
        done = step.last & (share == 1)
        if done.all():
            break
    return Maximum(theta, there, done)


def _chosen(worse: np.ndarray, old: Likelihood, new: Likelihood) -> Likelihood:
    """Return the likelihoods of problems that stayed, and of those that moved."""

    def part(a: Any, b: Any) -> Any:
        if a is None or b is None:
            return None
        return np.where(worse.reshape(-1, *[1] * (a.ndim - 1)), a, b)

    return Likelihood(*map(part, old, new)) if worse.any() else new
