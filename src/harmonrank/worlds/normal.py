"""The exact chance of a label given all scores: normal logits, and the mean of their sigmoid."""

__all__ = ["Conditional", "conditional", "mean_sigmoid", "normal_nodes", "runs_of"]

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.kernel import kernel
from harmonrank.support.parallel import each_part
from harmonrank.worlds.draws import Floats

_CHUNK = 1024


@dataclass(frozen=True, eq=False)
class Conditional:
    """z | o for rows of which those of a run share all but their o.

    Attributes:
        shift: (rows, objectives), the mean less that of z.
        spread: (runs, objectives), the standard deviation.
        log_density: (rows,), of o, but for a constant that all rows share.
    """

    shift: Floats
    spread: Floats
    log_density: Floats


def runs_of(*values: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the run of every row, and the first row of each: neighbours with equal values."""
    changed = np.zeros(len(values[0]), bool)
    for each in values:
        changed[1:] |= (each[1:] != each[:-1]).any(axis=1)
    return np.cumsum(changed), np.flatnonzero(np.r_[True, changed[1:]][: len(changed)])


def conditional(
    deviation: Floats, run: NDArray[np.intp], prior: Floats, noise: Floats
) -> Conditional:
    """Return z | o, which is normal with mean μ + ΣA⁻¹(o − μ) and covariance Σ − ΣA⁻¹Σ, A = Σ + N.

    Args:
        deviation: (rows, objectives), o − μ.
        run: (rows,), which Σ and N a row has.
        prior: Σ, (runs, objectives, objectives).
        noise: N, of the same shape. A missing o has an infinite variance: what is known is then
            the rest, whose A is the part of the matrix that is left.
    """
    lost = np.isinf(np.diagonal(noise, axis1=1, axis2=2))  # (runs, M)
    known = ~(lost[:, :, None] | lost[:, None, :])
    A = np.where(known, prior + np.where(known, noise, 0.0), np.eye(prior.shape[-1]))
    L = np.linalg.cholesky(A)
    inverse = np.linalg.inv(L)
    V = inverse @ np.where(lost[:, :, None], 0.0, prior)
    variance = np.diagonal(prior, axis1=1, axis2=2) - (V * V).sum(axis=1)
    u = (inverse[run] @ np.where(lost[run], 0.0, deviation)[:, :, None])[:, :, 0]
    volume = np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    return Conditional(
        (u[:, None, :] @ V[run])[:, 0],
        # Without upstream noise the variance is 0 up to rounding, of either sign.
        np.sqrt(np.maximum(variance, 0.0)),
        -0.5 * (u * u).sum(axis=1) - volume[run],
    )


@cache
def normal_nodes(count: int = 64) -> tuple[Floats, Floats]:
    """Return nodes and weights of the Gauss–Hermite rule for a standard normal variable.

    Nodes that weigh less than 1e-18 cannot change a sum in float64 and are left out.

    >>> x, w = normal_nodes(64)
    >>> round(float(w @ x**2), 12)
    1.0
    """
    x, w = np.polynomial.hermite_e.hermegauss(count)
    w = w / w.sum()
    return x[w > 1e-18], w[w > 1e-18]


def mean_sigmoid(mean: Floats, spread: Floats, run: NDArray[np.intp]) -> Floats:
    """Return E σ(Z) of normal Z with these means, and the spread of each row's run."""
    out, rule = np.empty_like(mean), normal_nodes()
    parts = -(-len(mean) // _CHUNK)
    each_part(lambda part: _mean_sigmoid(part, mean, spread, run, *rule, out), parts)
    return out


@kernel
def _mean_sigmoid(
    part: int,
    mean: Floats,
    spread: Floats,
    run: NDArray[np.intp],
    x: Floats,
    w: Floats,
    out: Floats,
) -> None:
    rows, M = mean.shape
    tilt = np.empty((M, x.size))
    first = part * _CHUNK
    for i in range(first, min(first + _CHUNK, rows)):
        if i == first or run[i] != run[i - 1]:
            for m in range(M):
                for q in range(x.size):
                    tilt[m, q] = np.exp(-spread[run[i], m] * x[q])
        for m in range(M):
            # exp(−(mean + spread·x)) = odds · tilt: one exponential per row, none per node.
            odds = np.exp(-mean[i, m])
            total = 0.0
            for q in range(x.size):
                total += w[q] / (1.0 + odds * tilt[m, q])
            out[i, m] = total
