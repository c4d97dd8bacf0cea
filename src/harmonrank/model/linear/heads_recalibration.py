"""Heads for upstream scores that have changed: the density of the logits is measured again."""

__all__ = ["recalibrated_heads"]

from dataclasses import replace

import numpy as np

from harmonrank.model.density.density import slot_counts
from harmonrank.model.density.spread import Spread
from harmonrank.model.linear.heads import Heads
from harmonrank.model.missing.density_fit import fit_incomplete_density

_MOSTLY = 0.5  # Quantiles are measured again as a whole or not at all.


def recalibrated_heads(
    heads: Heads,
    logits: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray | None = None,
    share: np.ndarray | None = None,
) -> Heads:
    """Return the heads for recent logits; their coefficients stay as they are.

    Scale and offset per context and the noise of each score are measured again from the scores
    alone (see `Density.recalibrated`), those that are not missing; of each score as far as its
    share says.
    """
    coordinate = heads.coordinate.refitted(logits, 1 if share is None else share >= _MOSTLY)
    coordinates = coordinate(logits)
    kept = Spread.of(coordinates, weight).clipped(coordinates)
    now = fit_incomplete_density(kept, codes, heads.slots, weight, heads.density.steady)
    counts = slot_counts(codes, heads.slots, weight)
    density = heads.density.recalibrated(now, counts, share)
    return replace(heads, coordinate=coordinate, density=density)
