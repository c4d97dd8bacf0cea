"""Solving for the intercepts that give every objective a wanted share of positives."""

__all__ = ["intercepts"]

from collections.abc import Mapping, Sequence

import numpy as np

from harmonrank.data.worlds._parts import Floats
from harmonrank.data.worlds._truth import normal_nodes
from harmonrank.errors import UsageError

# Contexts of nearly the same effect are merged: this moves a share by 1e-5 of itself.
ATOMS = 512


def intercepts(
    prevalence: Sequence[float],
    effects: Mapping[str, Floats],
    categories: Mapping[str, Floats],
    covariance: Floats,
) -> Floats:
    """Return β with E σ(β_m + effect_m(c) + z_m) = prevalence_m over contexts and z ~ N(0, Σ).

    >>> intercepts([0.5, 0.1], {}, {}, np.diag([2.0, 0.0])).round(4) + 0.0
    array([ 0. , -2.1972])

    Args:
        prevalence: one share per objective, inside (0, 1).
        effects: per context feature (categories, objectives).
        categories: per context feature the share of each category.
        covariance: Σ.
    """
    if len(prevalence) != len(covariance) or not all(0 < share < 1 for share in prevalence):
        raise UsageError(
            f"`prevalence` must be {len(covariance)} shares inside (0, 1), one per objective. "
            f"Got {list(prevalence)}."
        )
    spread = np.sqrt(np.diag(covariance))
    solved = [
        _solve(share, *_context_effect(m, effects, categories), spread[m])
        for m, share in enumerate(prevalence)
    ]
    return np.array(solved)


def _context_effect(
    m: int, effects: Mapping[str, Floats], categories: Mapping[str, Floats]
) -> tuple[Floats, Floats]:
    """Return values and shares of Σ_k effect_k[c_k, m] over independent features."""
    value, share = np.zeros(1), np.ones(1)
    for name, effect in effects.items():
        value = np.add.outer(value, effect[:, m]).ravel()
        share = np.multiply.outer(share, categories[name]).ravel()
        if value.size > ATOMS:
            value, share = _merged(value, share)
    return value, share


def _merged(value: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Return one value per bin, its mean: the total mean is kept, the error is of second order."""
    edges = np.linspace(value.min(), value.max(), ATOMS)
    bins = np.searchsorted(edges, value)
    mass = np.bincount(bins, share).astype(np.float64)
    filled = mass > 0
    return np.bincount(bins, share * value)[filled] / mass[filled], mass[filled]


def _solve(prevalence: float, value: Floats, share: Floats, spread: float) -> float:
    x, w = normal_nodes()
    grid, mass = np.add.outer(value, spread * x), np.multiply.outer(share, w)
    wanted = np.log(prevalence / (1 - prevalence))
    beta = wanted
    for _ in range(30):
        # Newton on the logit of the share: nearly a straight line, so a few steps do.
        p = 1 / (1 + np.exp(-(beta + grid)))
        mean, slope = np.sum(mass * p), np.sum(mass * p * (1 - p))
        step = (wanted - np.log(mean / (1 - mean))) * mean * (1 - mean) / slope
        beta += step
        if abs(step) < 1e-12:
            break
    return float(beta)
