"""Mixing: blends of experts, and relu with dropout, as loops with their gradient.

A batched product of 8,192 tiny matrices costs more in calls than in arithmetic, and drawing one
random number per unit took a quarter of a training step. Each call stays on its thread: others
have their own rows.
"""

__all__ = ["blend", "blend_slope", "thin", "thin_slope"]

import numpy as np

from harmonrank.support.kernel import inline_kernel, kernel


@inline_kernel
def _product(a: np.ndarray, b: np.ndarray) -> np.float32:
    # Eight sums side by side fill a vector register; one alone would wait for itself.
    z = np.float32(0)
    s0, s1, s2, s3, s4, s5, s6, s7 = z, z, z, z, z, z, z, z
    whole = len(a) // 8 * 8
    for k in range(0, whole, 8):
        s0 += a[k] * b[k]
        s1 += a[k + 1] * b[k + 1]
        s2 += a[k + 2] * b[k + 2]
        s3 += a[k + 3] * b[k + 3]
        s4 += a[k + 4] * b[k + 4]
        s5 += a[k + 5] * b[k + 5]
        s6 += a[k + 6] * b[k + 6]
        s7 += a[k + 7] * b[k + 7]
    for k in range(whole, len(a)):
        s0 += a[k] * b[k]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@kernel
def blend(gates: np.ndarray, experts: np.ndarray, shares: np.ndarray, mixed: np.ndarray) -> None:
    """Write shares = softmax(gates) and mixed_m = Σ_e shares_me · experts_e.

    Args:
        gates: (rows, objectives, experts).
        experts: (rows, experts, width).
        shares: Like the gates, written.
        mixed: (objectives, rows, width), written.
    """
    rows, M, E = gates.shape
    H = experts.shape[2]
    for i in range(rows):
        for m in range(M):
            top = gates[i, m, 0]
            for e in range(1, E):
                top = max(top, gates[i, m, e])
            total = np.float32(0)
            for e in range(E):
                shares[i, m, e] = np.exp(gates[i, m, e] - top)
                total += shares[i, m, e]
            for e in range(E):
                shares[i, m, e] /= total
            for k in range(H):
                mixed[m, i, k] = shares[i, m, 0] * experts[i, 0, k]
            for e in range(1, E):
                share = shares[i, m, e]
                for k in range(H):
                    mixed[m, i, k] += share * experts[i, e, k]


@kernel
def blend_slope(
    slope: np.ndarray,
    shares: np.ndarray,
    experts: np.ndarray,
    gate_slope: np.ndarray,
    expert_slope: np.ndarray,
) -> None:
    """Write the slopes by gates and experts, given that by `mixed`.

    ∂/∂experts_e = Σ_m shares_me · slope_m; ∂/∂gates_me = shares_me (a_me − Σ_j shares_mj a_mj)
    with a_me = slope_m · experts_e.
    """
    rows, M, E = shares.shape
    H = experts.shape[2]
    for i in range(rows):
        for e in range(E):
            for k in range(H):
                expert_slope[i, e, k] = 0
        for m in range(M):
            mean = np.float32(0)
            for e in range(E):
                share = shares[i, m, e]
                for k in range(H):
                    expert_slope[i, e, k] += share * slope[m, i, k]
                along = _product(slope[m, i], experts[i, e])
                gate_slope[i, m, e] = along
                mean += share * along
            for e in range(E):
                gate_slope[i, m, e] = shares[i, m, e] * (gate_slope[i, m, e] - mean)


@kernel
def thin(x: np.ndarray, drawn: np.ndarray, least: int, scale: float, kept: np.ndarray) -> None:
    """Write relu(x)·scale where a random byte is `least` or more, else 0; all arrays are flat."""
    for i in range(x.size):
        kept[i] = x[i] * scale if x[i] > 0 and drawn[i] >= least else np.float32(0)


@kernel
def thin_slope(slope: np.ndarray, kept: np.ndarray, scale: float, result: np.ndarray) -> None:
    """Write the slope by x, given that by `kept`: what came out as 0 passes nothing on."""
    for i in range(kept.size):
        result[i] = slope[i] * scale if kept[i] > 0 else np.float32(0)
