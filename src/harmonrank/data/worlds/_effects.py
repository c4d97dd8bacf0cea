"""Effects and shares of context features, drawn at random."""

__all__ = ["draw_effects", "draw_shares"]

from collections.abc import Mapping

import numpy as np

from harmonrank.data.worlds._parts import Floats


def draw_shares(rng: np.random.Generator, size: int) -> Floats:
    """Draw the shares of a feature's categories, smooth along it and not uniform."""
    share = np.exp(_smooth(0.8 * rng.standard_normal((size, 1)))[:, 0])
    shares: Floats = share / share.sum()
    return shares


def draw_effects(
    rng: np.random.Generator, categories: Mapping[str, Floats], M: int, spread: float
) -> dict[str, Floats]:
    """Draw effects, smooth along each feature, whose sum has this spread over contexts."""
    effects = {}
    for feature, share in categories.items():
        effect = _smooth(rng.standard_normal((share.size, M)))
        effect -= share @ effect
        effects[feature] = effect * (spread / np.sqrt(len(categories) * (share @ effect**2)))
    return effects


def _smooth(values: Floats) -> Floats:
    """Average each category with its neighbours: hours and ages are ordered."""
    for _ in range(len(values) // 4):
        values = (np.roll(values, 1, axis=0) + 2 * values + np.roll(values, -1, axis=0)) / 4
    return values
