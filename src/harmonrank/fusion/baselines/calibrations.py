"""Calibrations: each score's own logistic curve, from sums over rows in blocks."""

__all__ = ["fit_calibrations"]

from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank.data.rows.blocks import Blocks
from harmonrank.metrics import SMALLEST_PROBABILITY, logit
from harmonrank.model.fit_rows import FitRows
from harmonrank.support.kernel import kernel
from harmonrank.support.parallel import each_part

_PIECES = 16  # Of a block, whatever the threads, so that sums do not depend on them.
_RIDGE = 1e-3
_STEPS, _HALVINGS = 100, 60
_SMALLEST_STEP = 1e-10
_SUMS = 6  # loss; gradient by slope and intercept; their second derivatives


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

    Newton steps of all objectives at once, with the pull of `harmonrank.metrics.fit_logistic`
    towards slope 1 and intercept 0 and its results. The rows are looked at about ten times.
    """
    rows = blocks.made(_prepared)
    seen, mass, positive = rows.total(_masses)
    # Only ratios of weights matter: the ridge is measured in rows of mean weight.
    scale = seen / mass
    pi = np.clip(positive / mass, SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
    theta = np.stack([np.zeros(len(pi)), np.log(pi / (1 - pi))], axis=1)
    loss, slope, curve = _objective(rows, theta, scale)
    moving = np.ones(len(theta), dtype=bool)
    for _ in range(_STEPS):
        step = np.where(moving[:, None], np.linalg.solve(curve, slope[:, :, None])[:, :, 0], 0.0)
        for _ in range(_HALVINGS):
            new = _objective(rows, theta - step, scale)
            # Newton may overshoot where probabilities are tiny; half steps always come down.
            worse = new[0] > loss + 1e-12 * np.abs(loss)
            if not worse.any():
                break
            step[worse] /= 2
        theta = theta - step
        loss, slope, curve = np.minimum(loss, new[0]), new[1], new[2]
        moving &= np.abs(step).max(axis=1) >= _SMALLEST_STEP
        if not moving.any():
            break
    return theta


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


def _objective(
    rows: Blocks[_Rows], theta: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the loss of each objective, (M,), its gradient, (M, 2), and Hessian, (M, 2, 2)."""
    sums = rows.total(_sums, theta)[0] * scale[:, None]  # (M, 6)
    away = theta - [1.0, 0.0]
    loss = sums[:, 0] + 0.5 * _RIDGE * (away**2).sum(axis=1)
    curve = sums[:, [3, 4, 4, 5]].reshape(-1, 2, 2) + _RIDGE * np.eye(2)
    return loss, sums[:, 1:3] + _RIDGE * away, curve


def _sums(rows: _Rows, theta: np.ndarray) -> tuple[np.ndarray]:
    theta, weight = theta.copy(), rows.weights  # as an engine hands over what is read-only
    found = np.zeros((_PIECES, len(theta), _SUMS))
    each_part(lambda piece: _add(piece, rows.logits, rows.labels, weight, theta, found), _PIECES)
    return (found.sum(axis=0),)


@kernel
def _add(piece: int, logits: Any, labels: Any, weight: Any, theta: Any, found: Any) -> None:
    """Add a piece's losses, gradients and second derivatives."""
    n, M = logits.shape
    last = weight.shape[1] - 1
    for i in range(piece * n // _PIECES, (piece + 1) * n // _PIECES):
        for m in range(M):
            x, y, v = logits[i, m], labels[i, m], weight[i, min(m, last)]
            t = theta[m, 0] * x + theta[m, 1]
            small = np.exp(-abs(t))
            p = (1.0 if t >= 0 else small) / (1.0 + small)
            g, h = v * (p - y), v * p * (1.0 - p)
            found[piece, m, 0] += v * (np.log1p(small) + max(t, 0.0) - y * t)
            found[piece, m, 1] += g * x
            found[piece, m, 2] += g
            found[piece, m, 3] += h * x * x
            found[piece, m, 4] += h * x
            found[piece, m, 5] += h
