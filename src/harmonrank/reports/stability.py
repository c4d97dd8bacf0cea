"""Stability: how far each score's distribution moved from training to test rows."""

__all__ = ["PSI_DRIFTED", "PSI_MOVED", "SHOWN_ROWS", "Stability", "logit_space", "stability_of"]

from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank.data import Log
from harmonrank.metrics import population_stability_index
from harmonrank.support.logistic import logit, sigmoid

PSI_MOVED, PSI_DRIFTED = 0.1, 0.25
"""The customary limits of the population stability index."""

SHOWN_ROWS = 200_000
"""A page looks at no more rows: pictures would not show the difference."""

_SHOWN_BINS = 30
_SMALLEST = 1e-6


@dataclass(frozen=True)
class Stability:
    """How a score's distribution moved from training to test rows.

    Attributes:
        psi: Population stability index over tenths of the training rows.
        ks: Largest distance of the two distribution functions.
        edges: Of the bins that are shown, as scores.
        train: Share of training rows in each bin.
    """

    name: str
    psi: float
    ks: float
    edges: tuple[float, ...]
    train: tuple[float, ...]
    test: tuple[float, ...]


def stability_of(train: Log, test: Log) -> tuple[Stability, ...]:
    """Compare the distribution of each score between training and test rows."""
    before, now = train.sampled(SHOWN_ROWS), test.sampled(SHOWN_ROWS)
    drifts = []
    for m, name in enumerate(test.schema.names):
        old, new = (_known(log.scores[:, m].astype(float)) for log in (before, now))
        if len(old) and len(new):
            drifts.append(_stability(name, old, new))
    return tuple(drifts)


def _known(column: np.ndarray) -> np.ndarray:
    """Return the scores that are not missing."""
    known: np.ndarray = column[~np.isnan(column)]
    return known


def _stability(name: str, before: np.ndarray, now: np.ndarray) -> Stability:
    order = np.sort(before)
    both = np.sort(np.concatenate([before, now]))
    distance = np.searchsorted(order, both, "right") / len(before)
    distance -= np.searchsorted(np.sort(now), both, "right") / len(now)
    low, high = np.quantile(both, [0.001, 0.999])
    edges = logit_space(low, high, _SHOWN_BINS + 1)
    return Stability(
        name=name,
        psi=population_stability_index(before, now),
        ks=float(np.abs(distance).max()),
        edges=tuple(edges.tolist()),
        train=tuple(_shares(before, edges[1:-1]).tolist()),
        test=tuple(_shares(now, edges[1:-1]).tolist()),
    )


def _shares(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    counts = np.bincount(np.searchsorted(edges, values, "right"), minlength=len(edges) + 1)
    shares: np.ndarray = counts / counts.sum()
    return shares


def logit_space(low: Any, high: Any, count: int) -> np.ndarray:
    """Return scores that are evenly spaced as logits, where probabilities of any size show."""
    return sigmoid(np.linspace(logit(low, _SMALLEST), logit(high, _SMALLEST), count, axis=-1))
