"""Weightings: rules that move the objectives' weights while a network learns."""

__all__ = ["min_norm_weights", "raise_the_last"]

import numpy as np


def raise_the_last(
    weights: np.ndarray, auc: np.ndarray, reference: np.ndarray, step: float = 0.1
) -> np.ndarray:
    """Pantheon's rule: raise the weight of the objective that is farthest behind, if any is.

    w_k ← w_k + (step/M) Σ_m w_m for k = argmax_m (reference_m − auc_m), while that gap is above
    0: with weights that sum to 1, a step of 0.1/M. Pantheon (Cao et al., CIKM 2025) measures the
    gap to the formula that the network is to replace and repeats the rule, model after model,
    until no objective is behind; here an epoch counts as a model.

    An objective whose AUC is not known (nan) is never raised.

    >>> raise_the_last(np.ones(2), np.array([0.7, 0.6]), np.array([0.71, 0.65]))
    array([1. , 1.1])
    """
    gap = np.nan_to_num(reference - auc, nan=-np.inf)
    raised = weights.copy()
    last = int(gap.argmax())
    if gap[last] > 0:
        raised[last] += step / len(weights) * weights.sum()
    return raised


def min_norm_weights(gradients: np.ndarray) -> np.ndarray:
    """PE-LTR's weights: the convex combination of the gradients with the smallest norm.

    min |Σ_m w_m g_m|² over w ≥ 0, Σ w = 1. Its negative is a direction in which no objective gets
    worse; where the minimum is 0 the point is Pareto stationary. PE-LTR (Lin et al., RecSys 2019)
    solves the problem without w ≥ 0 and projects the answer; for a handful of objectives the
    problem itself is as cheap, so it is solved exactly (Wolfe's algorithm).

    An objective without a gradient, say one that is absent from the batch, gets no weight: it
    would else get all of it.

    Args:
        gradients: g, (objectives, size).

    >>> min_norm_weights(np.array([[1.0, 0.0], [0.0, 2.0]]))
    array([0.8, 0.2])
    >>> min_norm_weights(np.array([[1.0, 0.0], [2.0, 0.0]]))  # the same way: the shorter one
    array([1., 0.])
    """
    G = gradients @ gradients.T
    present = np.diagonal(G) > 0
    if not present.any():
        return np.full(len(G), 1 / len(G))
    weights = np.zeros(len(G))
    weights[present] = _nearest_to_zero(G[np.ix_(present, present)] / np.trace(G))
    return weights


def _nearest_to_zero(G: np.ndarray) -> np.ndarray:
    """Return the weights of the nearest point to 0 in the hull of vectors with products G."""
    M = len(G)
    w = np.zeros(M)
    corral = [int(np.diagonal(G).argmin())]
    w[corral] = 1.0
    for _ in range(10 * M):
        slope = G @ w
        enter = int(slope.argmin())
        # No vector lies on the near side of the plane through the present point: done.
        if slope[enter] > w @ slope - 1e-12 or enter in corral:
            break
        corral.append(enter)
        while True:
            y = _affine(G[np.ix_(corral, corral)])
            if y.min() > 1e-12:
                break
            # Go from w towards y until the first weight reaches 0, and leave that vector out.
            old = w[corral]
            leaving = y <= 1e-12
            share = np.min(old[leaving] / np.maximum(old[leaving] - y[leaving], 1e-300))
            y = old + min(share, 1.0) * (y - old)
            w[corral] = np.maximum(y, 0.0)
            corral = [k for k in corral if w[k] > 1e-12]
            w[[k for k in range(M) if k not in corral]] = 0.0
        w[:] = 0.0
        w[corral] = y
    w /= w.sum()
    return w


def _affine(G: np.ndarray) -> np.ndarray:
    """Return the weights, of any sign and sum 1, of the point nearest to 0."""
    # A trace of ridge decides between vectors that are the same.
    y = np.linalg.solve(G + 1e-12 * np.eye(len(G)), np.ones(len(G)))
    weights: np.ndarray = y / y.sum()
    return weights
