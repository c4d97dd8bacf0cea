"""AUCM and its slope at once, for a training step that has no graph."""

__all__ = ["AucmSlope", "aucm_slope"]

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from harmonrank.losses._patterns import Patterns
from harmonrank.losses._rank_sums import labels_of

Vector = NDArray[np.float64]


class AucmSlope(NamedTuple):
    """What `aucm_slope` returns; the means are 0 for an objective that is not present."""

    loss: float
    slope: NDArray[np.float32]  # ∂L/∂s, (rows,)
    mean_positive: Vector  # (objectives,)
    mean_negative: Vector
    present: NDArray[np.bool_]

    @property
    def mean_gap(self) -> Vector:
        """Δμ = μ⁺ − μ⁻."""
        return self.mean_positive - self.mean_negative


def aucm_slope(
    scores: NDArray[np.float32],
    labels: Tensor | Patterns,
    objective_weights: Vector,
    *,
    a: Vector,
    b: Vector,
    alpha: Vector,
    margin: float = 1.0,
    sample_weight: Tensor | None = None,
) -> AucmSlope:
    """`aucm_loss` and the gradient that autograd finds of it.

    ∂L/∂s_i = Σ_m w_m 2 v_i [y_im (s_i − a − α)/W⁺ + (1 − y_im) (s_i − b + α)/W⁻]: of each row, a
    line in its score whose two coefficients depend on its label pattern alone.

    >>> import torch
    >>> zero, labels = np.zeros(1), Patterns.of(torch.tensor([[1], [0], [0]]))
    >>> found = aucm_slope(np.float32([0.5, 0, 0]), labels, np.ones(1), a=zero, b=zero, alpha=zero)
    >>> round(found.loss, 6), found.slope.tolist()
    (0.25, [1.0, 0.0, 0.0])
    """
    known = labels_of(labels)
    # Around the mean, as squares of scores far from zero would cancel.
    centre = float(scores.mean(dtype=np.float64)) if len(scores) else 0.0
    s, a, b = scores.astype(np.float64) - centre, a - centre, b - centre
    v = None if sample_weight is None else sample_weight.double().cpu().numpy()
    masses = known.mass(v)
    present = (masses[0] > 0) & (masses[1] > 0)
    w = np.where(present, objective_weights, 0.0)
    up, down = (np.divide(1, mass, out=np.zeros(len(w)), where=present) for mass in masses)
    vs = s if v is None else v * s
    first, second = known.sums(vs), known.sums(vs * s)
    mean_positive, mean_negative = first * up, (vs.sum() - first) * down
    losses = (
        second * up - 2 * a * mean_positive + a**2
        + ((vs * s).sum() - second) * down - 2 * b * mean_negative + b**2
        + 2 * alpha * (margin - mean_positive + mean_negative) - alpha**2
    )  # fmt: skip
    line = 2 * (known.spread(w * (up - down)) + w @ down)
    low = (b - alpha) * down
    level = 2 * (known.spread(w * (low - (a + alpha) * up)) - w @ low)
    slope = line * s + level if v is None else v * (line * s + level)
    above, below = (np.where(present, mu + centre, 0.0) for mu in (mean_positive, mean_negative))
    return AucmSlope(float(w @ losses), slope.astype(np.float32), above, below, present)
