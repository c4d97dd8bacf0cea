"""Features that tell part of a latent vector, and popularity."""

__all__ = ["choose", "draw_vectors", "log_normal", "zipf"]

from collections.abc import Mapping

import numpy as np


def zipf(count: int, exponent: float) -> np.ndarray:
    """Return shares that fall as rank^(−exponent).

    >>> zipf(3, 1.0).round(3)
    array([0.545, 0.273, 0.182])
    """
    weight = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    return np.asarray(weight / weight.sum())


def choose(rng: np.random.Generator, shares: np.ndarray, count: int) -> np.ndarray:
    """Draw categories by their shares, as int64."""
    edges = np.cumsum(shares)
    return np.searchsorted(edges / edges[-1], rng.random(count), side="right")


def log_normal(
    rng: np.random.Generator, signal: np.ndarray, *, middle: float, spread: float, told: float
) -> np.ndarray:
    """Return counts whose logarithm tells the share `told` of a standard normal signal."""
    noise = rng.standard_normal(len(signal))
    return np.asarray(
        middle * np.exp(spread * (np.sqrt(told) * signal + np.sqrt(1 - told) * noise))
    )


def draw_vectors(
    rng: np.random.Generator, features: Mapping[str, tuple[np.ndarray, float]], told: float, D: int
) -> np.ndarray:
    """Return vectors of unit variance of which features explain the share `told`.

    Args:
        rng: Source of randomness.
        features: Category of every row, and how much that feature counts among the others.
        told: Share of the variance that the sum of category effects explains.
        D: Width of the vectors.
    """
    rows = len(next(iter(features.values()))[0])
    explained = np.zeros((rows, D))
    for category, weight in features.values():
        effects = rng.standard_normal((int(category.max()) + 1, D))
        explained += np.sqrt(weight) * effects[category]
    free = rng.standard_normal((rows, D))
    vectors = np.sqrt(told) * _standard(explained) + np.sqrt(1 - told) * _standard(free)
    return np.asarray(vectors)


def _standard(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
