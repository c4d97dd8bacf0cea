"""The exact conditional probabilities of a world."""

__all__ = ["conditional_probabilities"]

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.kernel import inline_kernel, kernel
from harmonrank.support.parallel import each_part
from harmonrank.worlds._normal import NODES, normal_nodes
from harmonrank.worlds._parts import Floats
from harmonrank.worlds._request_effects import RequestEffects

if TYPE_CHECKING:
    from harmonrank.worlds._view import View
    from harmonrank.worlds._world import World

CHUNK = 1024
# Hidden classes less likely than this change no probability by 1e-13.
NEGLIGIBLE = 1e-14


def conditional_probabilities(
    world: "World",
    o: Floats,
    view: "View",
    effect: Floats,
    nodes: int = NODES,
    unknown: RequestEffects | None = None,
) -> Floats:
    """Return p_m = E[σ(z_m + h_m) | o], row by row, (rows, objectives).

    In hidden class k, z | o is normal with mean μ_k + ΣA⁻¹(o − μ_k − score_k) and covariance
    Σ − ΣA⁻¹Σ, with μ_k = μ + chance_k, A = Σ + noise_k² N and N the covariance of the noise. The
    classes weigh share_k · N(o; μ_k + score_k, A). An o that is missing has a τ of infinity: what
    is known is then the rest, whose A is the part of the matrix that is left.

    Args:
        world: Where the rows come from.
        o: (rows, objectives), what upstream observed.
        view: What holds at these rows.
        effect: (rows, objectives), h.
        nodes: size of the Gauss–Hermite rule.
        unknown: What the rows of a request share beside; ΓΓᵀ is then added to Σ, and EEᵀ to A.
    """
    shared = RequestEffects.none(o.shape[1]) if unknown is None else unknown
    hidden = world.classes
    levels, level = np.unique(hidden.noise, return_inverse=True)
    out = np.empty_like(o)
    given = (
        o - view.mu,
        view.mu + effect,
        view.tau,
        view.gain,
        world.loadings,
        world.own,
        shared.covariance,
        shared.noise,
        world.shared_noise,
        levels,
        level,
        np.log(np.maximum(hidden.shares, 1e-300)),
        hidden.chance,
        hidden.score,
        *normal_nodes(nodes),
        out,
    )
    each_part(lambda chunk: _posterior(chunk, *given), -(-len(o) // CHUNK))
    return out


@inline_kernel
def _factor(
    tau: Floats,
    prior: Floats,
    blur: Floats,
    shared: Floats,
    level: float,
    x: Floats,
    L: Floats,
    V: Floats,
    tilt: Floats,
) -> None:
    """Fill in what depends on no score: L = chol A, V = L⁻¹Σ, exp(−spread·x).

    A row of a missing score is that of a unit matrix in L, and 0 in V.
    """
    M = tau.size
    for r in range(M):
        if np.isinf(tau[r]):
            L[r], V[r] = 0.0, 0.0
            L[r, r] = 1.0
            continue
        # Cholesky's rows one after the other; V follows by forward substitution in the same order.
        for c in range(r + 1):
            if np.isinf(tau[c]):
                L[r, c] = 0.0
                continue
            common = shared[r] * shared[c] if r != c else 1.0
            t = prior[r, c] + blur[r, c] + level * level * tau[r] * tau[c] * common
            for k in range(c):
                t -= L[r, k] * L[c, k]
            L[r, c] = np.sqrt(t) if r == c else t / L[c, c]
        for m in range(M):
            t = prior[r, m]
            for k in range(r):
                t -= L[r, k] * V[k, m]
            V[r, m] = t / L[r, r]
    for m in range(M):
        variance = prior[m, m]
        for r in range(M):
            variance -= V[r, m] * V[r, m]
        # Without upstream noise the variance is 0 up to rounding, of either sign.
        spread = np.sqrt(max(variance, 0.0))
        for k in range(x.size):
            tilt[m, k] = np.exp(-spread * x[k])


@inline_kernel
def _prior(gain: Floats, loadings: Floats, own: Floats, common: Floats, prior: Floats) -> None:
    """Fill in Σ = Λ diag g² Λᵀ + diag σ² + ΓΓᵀ."""
    M, factors = loadings.shape
    for r in range(M):
        for c in range(M):
            t = common[r, c] + (own[r] * own[r] if r == c else 0.0)
            for k in range(factors):
                t += loadings[r, k] * gain[k] * gain[k] * loadings[c, k]
            prior[r, c] = t


@inline_kernel
def _weigh(
    deviation: Floats,
    tau: Floats,
    level: NDArray[np.intp],
    log_share: Floats,
    chance: Floats,
    score: Floats,
    L: Floats,
    log_volume: Floats,
    u: Floats,
    weight: Floats,
) -> None:
    """Fill in u_k = L⁻¹(o − μ_k − score_k) and how likely each class is given o."""
    K, M = u.shape
    most = -np.inf
    for k in range(K):
        e = level[k]
        # log of share_k · N(o; μ_k + score_k, A), but for a constant that all classes share.
        t = log_share[k] - log_volume[e]
        for r in range(M):
            d = deviation[r] - chance[k, r] - score[k, r]
            for c in range(r):
                d -= L[e, r, c] * u[k, c]
            u[k, r] = 0.0 if np.isinf(tau[r]) else d / L[e, r, r]
            t -= 0.5 * u[k, r] * u[k, r]
        weight[k] = t
        most = max(most, t)
    # The largest is taken out first, so that no exponential overflows and one of them is 1.
    total = 0.0
    for k in range(K):
        weight[k] = np.exp(weight[k] - most)
        total += weight[k]
    for k in range(K):
        weight[k] /= total


@kernel
def _posterior(
    chunk: int,
    deviation: Floats,
    base: Floats,
    tau: Floats,
    gain: Floats,
    loadings: Floats,
    own: Floats,
    common: Floats,
    blur: Floats,
    shared: Floats,
    levels: Floats,
    level: NDArray[np.intp],
    log_share: Floats,
    chance: Floats,
    score: Floats,
    x: Floats,
    w: Floats,
    out: Floats,
) -> None:
    n, M = deviation.shape
    K, E = len(log_share), len(levels)
    prior, L, V = np.empty((M, M)), np.empty((E, M, M)), np.empty((E, M, M))
    tilt, log_volume = np.empty((E, M, x.size)), np.empty(E)
    u, weight = np.empty((K, M)), np.empty(K)
    first = chunk * CHUNK
    for i in range(first, min(first + CHUNK, n)):
        # The rows of a request share all but the mean of z | o.
        same = i > first
        for m in range(M):
            same = same and tau[i, m] == tau[i - 1, m]
        for k in range(gain.shape[1]):
            same = same and gain[i, k] == gain[i - 1, k]
        if not same:
            _prior(gain[i], loadings, own, common, prior)
            for e in range(E):
                _factor(tau[i], prior, blur, shared, levels[e], x, L[e], V[e], tilt[e])
                log_volume[e] = np.log(np.diag(L[e])).sum()
        _weigh(deviation[i], tau[i], level, log_share, chance, score, L, log_volume, u, weight)
        for m in range(M):
            total = 0.0
            for k in range(K):
                if weight[k] < NEGLIGIBLE:
                    continue
                e = level[k]
                mean = base[i, m] + chance[k, m]
                for r in range(M):
                    mean += V[e, r, m] * u[k, r]
                # exp(−(mean + spread·x)) = odds · tilt: one exponential per row, none per node.
                odds = np.exp(-mean)
                inner = 0.0
                for q in range(x.size):
                    inner += w[q] / (1.0 + odds * tilt[e, m, q])
                total += weight[k] * inner
            out[i, m] = total
