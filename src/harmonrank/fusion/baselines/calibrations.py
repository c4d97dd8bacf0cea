"""Calibrations: each score's own logistic curve, from sums over rows in blocks."""

__all__ = ["fit_calibrations"]

from dataclasses import dataclass

import numpy as np

from harmonrank.data.rows.blocks import Blocks
from harmonrank.metrics import fit_logistic_curves, logistic_likelihood, logit
from harmonrank.model.fit_rows import FitRows
from harmonrank.support.newton import Likelihood


@dataclass(frozen=True)
class _Rows:
    """A block: (rows, M) logits and labels, and what each label counts, (rows, M) or (rows, 1)."""

    logits: np.ndarray
    labels: np.ndarray
    counts: np.ndarray | None

    @property
    def weights(self) -> np.ndarray:
        return np.ones((len(self.logits), 1)) if self.counts is None else self.counts


def fit_calibrations(blocks: Blocks[FitRows]) -> np.ndarray:
    """Return slope and intercept of P(y_m=1 | s_m) = σ(slope·logit(s_m) + intercept), (M, 2).

    All objectives at once, with the results of `harmonrank.metrics.fit_logistic`. The rows are
    looked at about ten times.
    """
    rows = blocks.made(_prepared)
    seen, mass, positive = rows.total(_masses)

    def look(theta: np.ndarray) -> Likelihood:
        value, slope, curvature = rows.total(_likelihood, theta)
        # Only ratios of weights matter: the pull is measured in rows of mean weight.
        scale = (seen / mass)[:, None]
        return Likelihood(value * scale[:, 0], slope * scale, curvature * scale[:, :, None])

    return fit_logistic_curves(look, positive / mass).theta


def _prepared(rows: FitRows) -> _Rows:
    counts, labels = rows.counts(), rows.labels
    if counts is not None and counts.ndim == 1:
        counts = counts[:, None]
    known = labels.astype(np.float64 if labels.dtype.kind == "f" else np.uint8, copy=False)
    return _Rows(logit(rows.scores), np.ascontiguousarray(known), counts)


def _masses(rows: _Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how many rows show each objective, their weight, and that of the positive ones."""
    counts = np.broadcast_to(rows.weights, rows.labels.shape)
    return (counts > 0).sum(axis=0), counts.sum(axis=0), (counts * rows.labels).sum(axis=0)


def _likelihood(rows: _Rows, theta: np.ndarray) -> Likelihood:
    return logistic_likelihood(rows.logits, rows.labels, rows.weights, theta)
