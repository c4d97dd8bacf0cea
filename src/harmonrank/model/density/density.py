"""The density of upstream logits: what they look like in each context, before any label is seen.

An upstream model reports a noisy view of what will happen. With ℓ the logits of all scores of a
row, Gaussian noise of variance s² on ℓ_m, and f the density of ℓ in the row's context, Tweedie's
formula gives the denoised logit whatever the density of the signal:

    E[signal_m | ℓ] = ℓ_m + s² ∂ log f / ∂ℓ_m

So the density of the scores, which needs no labels and therefore is known very well, tells in
which direction the other objectives correct each score. Here f is normal in each context, with
mean μ(c) and covariance C(c), whose diagonal v(c) depends on the context while the rest does not:
signal is shared by all contexts, noise is not. Then ∂ log f / ∂ℓ = −r with r = C(c)⁻¹(ℓ − μ(c)),
the *surprise* of each score given the others: eq. 1 and eq. 2 of docs/default-method.md.
"""

__all__ = [
    "MOST_EFFECT",
    "MOST_STEADY",
    "SMALLEST_EIGENVALUE",
    "Density",
    "blocks_of",
    "distinct_contexts",
    "mixed",
    "slot_counts",
]

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from harmonrank.support.kernel import kernel
from harmonrank.support.storage.arrays import Array

SMALLEST_EIGENVALUE = 0.05
"""Of a correlation matrix; correlations are shrunk until it has no smaller one."""
MOST_EFFECT = 4.0
"""Of the context on a log variance."""
MOST_STEADY = 0.95
"""Part of a variance; what is left for effects of the context must not vanish."""
_DENSE_CONTEXTS = 4_000_000
_BLOCK_NUMBERS = 2_000_000  # 16 MB at a time, however many contexts there are.
_DEAD = np.log(1e-9)  # Less variance is what rounding leaves of one value.

_EACH = Array(("M",), low=-1e6, high=1e6)
_EFFECT = Array(("slots", "M"), low=-1e6, high=1e6)
_LOG = Array(("M",), low=-100.0, high=100.0)


@dataclass(frozen=True)
class Density:
    """Mean and covariance of the logits given the context; effects of features add up.

    Attributes:
        first: Row of each context feature's first slot in the tables of effects.
        base: (M,) mean logit over all rows.
        mean: (slots, M) what each context value adds to the mean.
        log_variance: (M,) of the deviation from the mean.
        steady: (M,) which part of the variance no context changes, 0 to 1 (`density_spread`).
        spread: (slots, M) what each context value adds to the log variance, to first order.
        covariance: (M, M) of the deviations; its diagonal is not used.
        excess: (M,) what new noise of an upstream model added to the log variance since the fit.
        centre_base, centre: Like base and mean, of the logits that come in now; they differ from
            those of the fit once an upstream model was replaced and the density recalibrated.
        scale: (M,) units of the logits that come in now per unit at the fit.
    """

    first: Annotated[np.ndarray, Array(("features",), "int64", low=0, high=1e6, rising=True)]
    base: Annotated[np.ndarray, _EACH]
    mean: Annotated[np.ndarray, _EFFECT]
    log_variance: Annotated[np.ndarray, _LOG]
    steady: Annotated[np.ndarray, Array(("M",), low=0.0, high=MOST_STEADY)]
    spread: Annotated[np.ndarray, _EFFECT]
    covariance: Annotated[np.ndarray, Array(("M", "M"), low=-1e12, high=1e12)]
    excess: Annotated[np.ndarray, _LOG]
    centre_base: Annotated[np.ndarray, _EACH]
    centre: Annotated[np.ndarray, _EFFECT]
    scale: Annotated[np.ndarray, Array(("M",), low=1e-12, high=1e12)]

    def sum_of(self, effects: np.ndarray, contexts: np.ndarray) -> np.ndarray:
        """Return Σ_features effects of each context, (contexts, M)."""
        total = np.zeros((len(contexts), effects.shape[1]))
        for feature, first in enumerate(self.first):
            total += effects[first + contexts[:, feature]]
        return total

    def mean_of(self, contexts: np.ndarray) -> np.ndarray:
        """Return μ(c) less the base, in the units of the fit."""
        return self.sum_of(self.mean, contexts)

    def centre_of(self, contexts: np.ndarray) -> np.ndarray:
        """Return the mean of the logits that come in now."""
        centre: np.ndarray = self.centre_base + self.sum_of(self.centre, contexts)
        return centre

    def variance_of(self, contexts: np.ndarray) -> np.ndarray:
        """Return v(c), kept within a factor of e⁴ of its base; eq. 3 of docs/default-method.md.

        It is a steady part and one on which effects multiply, ψ + (1 − ψ) exp(δ / (1 − ψ)) of the
        base with δ the sum of the effects.
        """
        rest = 1 - self.steady
        effect = np.clip(self.sum_of(self.spread, contexts) / rest, -MOST_EFFECT, MOST_EFFECT)
        effect = self.excess + np.log(self.steady + rest * np.exp(effect))
        variance: np.ndarray = np.exp(
            self.log_variance + np.clip(effect, -MOST_EFFECT, MOST_EFFECT)
        )
        return variance

    def precision_of(self, contexts: np.ndarray) -> np.ndarray:
        """Return the inverse covariance in each context, (contexts, M, M).

        Where signal and noise do not fit together, correlations are shrunk until they do.
        """
        M = len(self.base)
        precision = np.empty((len(contexts), M, M))
        for block in blocks_of(len(contexts), M * M):
            precision[block] = self._precision_of(contexts[block])
        return precision

    def _precision_of(self, contexts: np.ndarray) -> np.ndarray:
        deviation = np.sqrt(self.variance_of(contexts))
        M = len(self.base)
        off = self.covariance * (1 - np.eye(M))
        precision = np.empty((len(contexts), M, M))
        proper = np.empty(len(contexts), bool)
        _invert(off, deviation, precision, proper)
        if not proper.all():
            precision[~proper] = _shrunk_precision(off, deviation[~proper])
        return precision

    def recalibrated(
        self, now: "Density", counts: np.ndarray, share: np.ndarray | None = None
    ) -> "Density":
        """Return this density for logits that now follow another one, without a label.

        The signal that two upstream models share does not change when one of them is replaced, so
        covariances tell the new scale: eq. 12 of docs/default-method.md. A pair counts by how well
        its ratio is known; where no pair tells, the ratio of standard deviations does. What is left
        of the new variance is noise, which counts like the noise of a context: the heads know how
        to weigh it. A logit that has one value only is taken for the mean of its context, as it
        tells nothing.

        Recent rows are often few, and mostly one model was replaced. So effects of the context and
        correlations are those of before, rescaled, but for as much change as the recent rows prove.

        Args:
            now: The density of recent rows, fitted with the steady part of this one.
            counts: (slots,) how many of these rows have each context value.
            share: (M,) how far each score is recalibrated, 0 to 1; all of them wholly if left out.
        """
        rows = _rows(self, counts)
        dead = now.log_variance < _DEAD
        scale = np.where(dead, 1.0, _scale_between(self, now, rows))
        excess = now.log_variance - 2 * np.log(scale) - self.log_variance
        kept = dead[:, None] | dead
        n = np.maximum(counts, 1e-9)[:, None]
        centre, spread = now.mean.copy(), now.spread.copy()
        for feature in np.split(np.arange(len(now.mean)), self.first[1:]):
            if not len(feature):
                continue
            noise = np.exp(now.log_variance) / n[feature]
            centre[feature] = _shrunk(now.mean[feature], scale * self.mean[feature], noise)
            # The logarithm of a variance of n rows varies by 2/n.
            spread[feature] = _shrunk(now.spread[feature], self.spread[feature], 2 / n[feature])
        unit = np.sqrt(np.exp(self.log_variance + excess))
        apart = np.outer(unit, unit)
        now_tie, tie = now.covariance / np.outer(scale, scale) / apart, self.covariance / apart
        tie = _shrunk_pairs(now_tie, tie, rows)
        part = np.ones(len(scale)) if share is None else share
        either = 1 - np.outer(1 - part, 1 - part)
        return replace(
            self,
            spread=mixed(self.spread, np.where(dead, self.spread, spread), part),
            excess=mixed(self.excess, np.where(dead, self.excess, excess), part),
            covariance=mixed(self.covariance, np.where(kept, self.covariance, tie * apart), either),
            centre_base=mixed(self.centre_base, now.base, part),
            centre=mixed(self.centre, centre, part),
            scale=np.exp(mixed(np.log(self.scale), np.log(scale), part)),
        )


def mixed(before: np.ndarray, now: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return a part of the way from one array to another; both ends exactly.

    >>> mixed(np.zeros(3), np.array([0.1, 0.2, 0.3]), np.array([0.0, 0.5, 1.0]))
    array([0. , 0.1, 0.3])
    """
    result: np.ndarray = (1 - share) * before + share * now
    return result


@kernel
def _invert(off: Any, deviation: Any, precision: Any, proper: Any) -> None:
    """Write the inverse covariance of each context, and whether its correlations are proper.

    They are if no eigenvalue is below `SMALLEST_EIGENVALUE`, that is, if the correlations less so
    much on the diagonal have a Cholesky factor: most often so, and soon seen. Others are left out.
    """
    C, M = deviation.shape
    correlation, root, inverse = np.empty((M, M)), np.empty((M, M)), np.empty((M, M))
    for c in range(C):
        d = deviation[c]
        for i in range(M):
            for j in range(i):
                correlation[i, j] = off[i, j] / (d[i] * d[j])
            correlation[i, i] = 1.0 - SMALLEST_EIGENVALUE
        proper[c] = M == 1 or _factor(correlation, root)
        if not proper[c]:
            continue
        for i in range(M):
            correlation[i, i] = 1.0
        _factor(correlation, root)
        # L⁻¹ by columns, then L⁻ᵀL⁻¹.
        for j in range(M):
            inverse[j, j] = 1.0 / root[j, j]
            for i in range(j + 1, M):
                total = 0.0
                for k in range(j, i):
                    total -= root[i, k] * inverse[k, j]
                inverse[i, j] = total / root[i, i]
        for i in range(M):
            for j in range(i + 1):
                total = 0.0
                for k in range(i, M):
                    total += inverse[k, i] * inverse[k, j]
                precision[c, i, j] = precision[c, j, i] = total / (d[i] * d[j])


@kernel
def _factor(matrix: Any, root: Any) -> bool:
    """Write the Cholesky factor of a matrix, whose lower half is given; tell whether it has one."""
    for i in range(len(matrix)):
        for j in range(i):
            total = matrix[i, j]
            for k in range(j):
                total -= root[i, k] * root[j, k]
            root[i, j] = total / root[j, j]
        total = matrix[i, i]
        for k in range(i):
            total -= root[i, k] * root[i, k]
        if total <= 0.0:
            return False
        root[i, i] = np.sqrt(total)
    return True


def _shrunk_precision(off: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return the inverse covariance of contexts whose correlations are shrunk to be proper."""
    eye, apart = np.eye(len(off)), deviation[:, :, None] * deviation[:, None, :]
    correlation = off / apart + eye
    smallest = np.linalg.eigvalsh(correlation)[:, 0]
    # Towards the unit matrix eigenvalues move as 1 − keep (1 − e): this keep meets the bound.
    keep = np.minimum(1.0, (1 - SMALLEST_EIGENVALUE) / np.maximum(1 - smallest, 1e-12))
    correlation = eye + keep[:, None, None] * (correlation - eye)
    scaled: np.ndarray = np.linalg.inv(correlation) / apart
    return scaled


def blocks_of(contexts: int, numbers: int) -> Iterator[slice]:
    """Cut contexts into blocks, so that what is computed of each stays within bounds.

    Args:
        contexts: How many there are.
        numbers: How many are computed of each context.

    >>> list(blocks_of(5, _BLOCK_NUMBERS // 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, _BLOCK_NUMBERS // numbers)
    return (slice(low, min(low + step, contexts)) for low in range(0, contexts, step))


def distinct_contexts(codes: np.ndarray, slots: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of context codes, and which of them each row has.

    >>> distinct_contexts(np.array([[1, 0], [0, 2], [1, 0]]), (2, 3))
    (array([[0, 2],
           [1, 0]]), array([1, 0, 1]))
    """
    if not slots:
        return np.zeros((1, 0), dtype=np.int64), np.zeros(len(codes), dtype=np.int64)
    size = int(np.prod(np.array(slots, dtype=np.float64)))
    if size > np.iinfo(np.int64).max // 2:
        distinct, of_row = np.unique(codes, axis=0, return_inverse=True)
        return distinct.astype(np.int64), of_row.reshape(-1)
    number = np.zeros(len(codes), dtype=np.int64)
    for feature, count in enumerate(slots):
        number = number * count + codes[:, feature]
    if size <= _DENSE_CONTEXTS:
        present = np.zeros(size, dtype=bool)
        present[number] = True
        distinct = np.flatnonzero(present)
        of_row = (np.cumsum(present) - 1)[number]
    else:
        distinct, of_row = np.unique(number, return_inverse=True)
    return np.stack(np.unravel_index(distinct, slots), axis=1), of_row


def slot_counts(
    codes: np.ndarray, slots: tuple[int, ...], weight: np.ndarray | None = None
) -> np.ndarray:
    """Return how many rows have each context value, (slots,); of no feature, how many there are.

    >>> slot_counts(np.array([[1, 0], [1, 2]]), (2, 3))
    array([0., 2., 1., 0., 1.])
    """
    w = np.ones(len(codes)) if weight is None else weight
    parts = [np.bincount(codes[:, f], w, size) for f, size in enumerate(slots)]
    return np.concatenate(parts) if parts else np.array([w.sum()])


def _rows(density: Density, counts: np.ndarray) -> int:
    """Return how many rows there are of which these many have each context value."""
    first = counts[: density.first[1]] if len(density.first) > 1 else counts
    return round(float(first.sum()))


def _shrunk(effects: np.ndarray, prior: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return effects (slots, M) of one feature: the prior, and as much change as is no chance.

    Empirical Bayes: what the changes vary beyond their noise is what they are believed to vary. A
    change that all values share is none of the feature's, and stays.
    """
    weight = 1 / np.broadcast_to(noise, effects.shape)
    change = effects - prior
    common = (weight * change).sum(axis=0) / weight.sum(axis=0)
    own = change - common
    # Σ w own² is n − 1 on average where there is nothing but noise.
    beyond = (weight * own**2).sum(axis=0) - (len(effects) - 1)
    varies = np.maximum(beyond, 0.0) / np.maximum(weight.sum(axis=0), 1e-300)
    shrunk: np.ndarray = prior + common + varies / (varies + noise) * own
    return shrunk


def _shrunk_pairs(correlations: np.ndarray, prior: np.ndarray, rows: int) -> np.ndarray:
    """Return correlations: the prior, and as much change as is no chance."""
    noise = (1 + prior**2) / max(rows, 1)
    pair = np.triu_indices(len(correlations), 1)
    change = correlations - prior
    if not len(pair[0]):
        return correlations
    varies = max(float(np.mean(change[pair] ** 2 - noise[pair])), 0.0)
    shrunk: np.ndarray = prior + varies / (varies + noise) * change
    return shrunk


def _scale_between(old: Density, new: Density, rows: int) -> np.ndarray:
    """Return ρ, units of new logits per unit of old ones, by weighted least squares in log ρ."""
    M = len(old.base)
    ratio = 0.5 * (new.log_variance - old.log_variance)
    # Noise may have changed too, so the ratio of deviations is taken for a guess, good to 10 %.
    left, right = 100.0 * np.eye(M), 100.0 * ratio
    for i in range(M):
        for j in range(i):
            before = old.covariance[i, j] / np.exp((old.log_variance[i] + old.log_variance[j]) / 2)
            after = new.covariance[i, j] / np.exp((new.log_variance[i] + new.log_variance[j]) / 2)
            # The log of a correlation ρ varies by less than 1/(rows ρ²); here are two of them.
            known = rows * min(before**2, after**2) / 4
            if before * after <= 0 or known < 100:
                continue
            weight = min(known, 1e5)
            pair = np.zeros(M)
            # The logarithm of eq. 12 of docs/default-method.md is linear in log ρ_i and log ρ_j.
            pair[[i, j]] = 1.0
            left += weight * np.outer(pair, pair)
            right += weight * pair * np.log(new.covariance[i, j] / old.covariance[i, j])
    scale: np.ndarray = np.exp(np.linalg.solve(left, right))
    return scale
