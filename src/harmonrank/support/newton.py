"""Newton's method for penalised likelihoods, with the evidence for how strong the penalty is.

M problems of D coefficients each are maximised in parallel, as one pass over the rows serves them
all. The rows are summarised by a `Likelihood` at a point: sums, which blocks and workers can add. A
step goes to the maximum of the quadratic there under a normal `Prior`. A problem whose step would
make its posterior smaller halves the step until it does not. So no step makes a posterior smaller,
and a problem that has not converged is reported.

MacKay's (1992) update λ = γ/Σ(θ − mean)² maximises the evidence for the precision λ of a group of
coefficients, γ being the number of them that the data determine: eq. 5 of docs/default-method.md.
Precisions of a pool are similar but not equal: they are drawn from one gamma distribution, whose
mean and spread are estimated by the same evidence.
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
from math import lgamma
from typing import Any, NamedTuple
from warnings import warn

import numpy as np

from harmonrank.support.errors import ConvergenceWarning

_LEAST, MOST = 1e-2, 1e6
"""The largest precision; coefficients with it are practically 0."""
_FREE = 1e-6  # The precision of a coefficient that nothing shrinks.
_HALVINGS = 12
# How many coefficients the mean of a pool may count for beside a group's own; 32 is likeliest.
_WORTHS, _USUAL, _USUAL_SPREAD = np.geomspace(1, 1024, 11), 32.0, 1.5
_MEAN_ROUNDS = 10
_ROUNDING = 1e-9  # The rounding error of a log-likelihood that is summed in float64.
SINGLE_ROUNDING = 1e-3
"""The same in nats for float32 terms; it is far below what data can resolve."""


class Likelihood(NamedTuple):
    """Log-likelihoods at a point, and how they change there.

    Attributes:
        value: (M,).
        slope: (M, D), gradients.
        curvature: (M, D, D), negative Hessians, or whatever else the steps need.
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
        group: (D,) or (M, D) of each coefficient; −1 for a free one.
        pools: Groups with similar precisions.
        scale: (M, D) how often each precision counts: more than once where the rows that tell of a
            coefficient are not independent.
    """

    mean: np.ndarray
    precision: np.ndarray
    group: np.ndarray
    pools: tuple[slice, ...] = ()
    scale: np.ndarray | float = 1.0

    @property
    def decay(self) -> np.ndarray:
        """The precision of each coefficient."""
        return self.scale * np.where(self.group >= 0, self.precision[self.group], _FREE)

    def penalty(self, theta: np.ndarray) -> np.ndarray:
        """Return the penalty that the prior adds to each problem, (M,)."""
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
            kept: How many of the first groups keep their precision.
        """
        group = np.broadcast_to(self.group, theta.shape)
        inside, count = group >= 0, len(self.precision)

        def sums(values: np.ndarray) -> np.ndarray:
            return np.bincount(group[inside], values[inside], count)

        known = sums(1 - self.decay * variance)
        energy = np.maximum(sums((theta - self.mean) ** 2), 1e-12)
        there = np.bincount(group[inside], minlength=count) > 0
        precision = np.where(there, known / energy, self.precision)
        for pool in self.pools:
            precision[pool] = pooled_precisions(known[pool], energy[pool])
        precision = np.where(there, np.clip(precision, _LEAST, MOST), self.precision)
        precision[:kept] = self.precision[:kept]
        return replace(self, precision=precision)


def pooled_precisions(known: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """Return the precisions of similar groups, given the estimates of each group.

    γ coefficients of precision λ have energy E with E λ ~ χ²(γ), and λ is drawn from a gamma
    distribution of mean μ that counts for a coefficients. Then λ is (γ + a)/(E + a/μ) on average,
    with the likeliest μ, averaged over a by the evidence. Groups that differ by more than chance
    keep their own γ/E; others move towards the shared precision.

    >>> pooled_precisions(np.array([50.0, 50.0, 0.1]), np.array([5.0, 5.0, 0.01])).round(1)
    array([10., 10., 10.])
    >>> pooled_precisions(np.array([500.0, 500.0]), np.array([5.0, 500.0])).round(1)
    array([99.7,  1. ])
    """
    known, energy = np.maximum(known, 1e-9), np.maximum(energy, 1e-12)
    worth = _WORTHS[:, None]
    prior = worth * energy.sum() / known.sum()  # a/μ, from the precision that all would share
    for _ in range(_MEAN_ROUNDS):
        average = (known + worth) / (energy + prior)  # (worths, groups)
        prior = worth / average.mean(axis=1, keepdims=True)
    gammas = known.tolist()  # Python numbers, of which lgamma takes many times as many a second.
    counts = np.array(
        [sum(lgamma((g + a) / 2) - lgamma(a / 2) for g in gammas) for a in _WORTHS.tolist()]
    )
    fits = worth * np.log(prior) - (known + worth) * np.log(energy + prior)
    expected = (np.log(_WORTHS / _USUAL) / _USUAL_SPREAD) ** 2
    evidence = counts + 0.5 * (fits.sum(axis=1) - expected)
    say = np.exp(evidence - evidence.max())
    pooled: np.ndarray = say @ average / say.sum()
    return pooled


class Step(NamedTuple):
    """A proposed step.

    Attributes:
        target: (M, D), where the step leads.
        penalty: The penalty of each problem at a point, (M,).
        last: Whether a problem is done when it reaches the target; (M,) or one for all.
    """

    target: np.ndarray
    penalty: Callable[[np.ndarray], np.ndarray]
    last: np.ndarray | bool


@dataclass(frozen=True)
class Rounds:
    """When a prior and the coefficients under it have converged.

    Attributes:
        most: How many rounds there may be.
        enough: The largest move of a coefficient, in posterior standard deviations.
        steady: The largest change of the logarithm of a precision that matters.
        near: If the first move is larger, the quadratic is not trusted and the rounds end.
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
    """Return a step to coefficients, the prior that fits them, and the length of the step.

    Precisions converge slowly, but without passes over the rows: near the maximum the quadratic
    replaces them. The step leads to the maximum under the last prior but one. Its length is its
    largest change in posterior standard deviations.

    Args:
        start: (M, D) coefficients.
        prior: The current prior.
        top: Returns coefficients and their posterior variances under a prior.
        update: Returns the prior that fits these.
        rounds: When the rounds end.
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
    """The result of a maximisation.

    Attributes:
        theta: (M, D).
        there: The likelihood at it.
        converged: (M,) whether the last step was short enough.
    """

    theta: np.ndarray
    there: Likelihood
    converged: np.ndarray

    def checked(self, what: str) -> "Maximum":
        """Return this result, after a warning if some problem has not converged."""
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
    """Maximise the log-likelihood of `look` less a penalty, from (M, D) coefficients.

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
        look: Returns the likelihood at a point.
        start: The first point.
        propose: Returns the step from a point with its likelihood; None at the maximum.
        steps: How many steps there may be.
        rounding: Nats by which a posterior may be smaller due to rounding.
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
) -> Generator[np.ndarray, Likelihood, Maximum]:
    """Maximise as `maximise` does, but yield each point and receive the likelihood there.

    So one pass over the rows can serve several problems.
    """
    theta = start
    there = yield theta
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
        # A problem without a better point stays where it is.
        theta, there = np.where(worse[:, None], theta, trial), _chosen(worse, there, new)
        done = step.last & (share == 1)
        if done.all():
            break
    return Maximum(theta, there, done)


def _chosen(worse: np.ndarray, old: Likelihood, new: Likelihood) -> Likelihood:
    """Return the old likelihoods of problems that stayed, and the new ones of others."""

    def part(a: Any, b: Any) -> Any:
        if a is None or b is None:
            return None
        return np.where(worse.reshape(-1, *[1] * (a.ndim - 1)), a, b)

    return Likelihood(*map(part, old, new)) if worse.any() else new
