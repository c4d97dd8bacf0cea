"""Logits and sigmoids, and how far probabilities are kept from 0 and 1.

Functions take arrays; those that end in `_of` take one number, inside kernels. No other file writes
a logit, a sigmoid or such a bound by hand; a test lists the few that do, with their reasons.
"""

__all__ = [
    "LARGEST_BELOW_ONE",
    "SMALLEST_POSITIVE",
    "SMALLEST_PROBABILITY",
    "SMALLEST_SCORE",
    "SMALLEST_SINGLE",
    "clipped",
    "log_likelihoods",
    "logit",
    "logit_of",
    "score_logit",
    "sigmoid",
    "sigmoid_and_loss",
    "sigmoid_of",
]

from typing import Any

import numpy as np

from harmonrank.support.kernel import inline_kernel

SMALLEST_PROBABILITY = 1e-12
"""Probabilities are kept this far from 0 and 1 where their logit is taken."""
SMALLEST_SCORE = 1e-9
"""The same for upstream scores, whose smaller logits reflect only rounding, and for fitted chances
whose likelihood decides: none of them is surer than that."""
SMALLEST_SINGLE = 1e-7
"""The same for what is stored in float32, where the number before 1 is 6e-8 away from it."""
SMALLEST_POSITIVE, LARGEST_BELOW_ONE = 1e-300, 1 - 1e-16
"""Bounds of what only must not be 0 or 1: float64 holds nothing between the latter and 1."""

_FARTHEST = {"float32": 80.0, "float64": 700.0}  # Beyond it eˣ overflows.


def clipped(p: Any, smallest: float = SMALLEST_PROBABILITY) -> np.ndarray:
    """Return probabilities in float64, kept so far from 0 and 1."""
    inside: np.ndarray = np.clip(np.asarray(p, np.float64), smallest, 1 - smallest)
    return inside


def logit(p: Any, smallest: float = SMALLEST_PROBABILITY) -> np.ndarray:
    """Return log(p / (1 − p)); 0 and 1 count as 1e-12 away from the edge.

    >>> logit(np.array([0.5, 0.0])).round(2)
    array([  0.  , -27.63])
    """
    inside = clipped(p, smallest)
    return np.asarray(np.log(inside / (1 - inside)))


def score_logit(scores: np.ndarray) -> np.ndarray:
    """Return the logits of upstream scores."""
    return logit(scores, SMALLEST_SCORE)


def sigmoid(x: Any) -> np.ndarray:
    """Return 1 / (1 + exp(−x)) without overflow, in the precision of x.

    >>> sigmoid(np.array([0.0, -1e9])).round(3)
    array([0.5, 0. ])
    """
    x = np.asarray(x) * 1.0
    return np.asarray(1 / (1 + np.exp(np.minimum(-x, _FARTHEST[x.dtype.name]))))


def log_likelihoods(p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return y log p + (1 − y) log(1 − p) of each label y, finite for every p.

    >>> log_likelihoods(np.array([0.5, 0.0]), np.array([1, 0])).round(4)
    array([-0.6931,  0.    ])
    """
    if labels.dtype.kind == "f":
        near = np.clip(p, SMALLEST_POSITIVE, LARGEST_BELOW_ONE)
        return np.asarray(labels * np.log(near) + (1 - labels) * np.log1p(-near))
    return np.asarray(np.log(np.maximum(np.where(labels > 0, p, 1 - p), SMALLEST_POSITIVE)))


@inline_kernel
def logit_of(p: float, smallest: float) -> Any:
    """Return log(p / (1 − p)) of a probability kept so far from 0 and 1."""
    inside = min(max(p, smallest), 1.0 - smallest)
    return np.log(inside / (1.0 - inside))


@inline_kernel
def sigmoid_of(x: float) -> Any:
    """Return 1 / (1 + exp(−x))."""
    small = np.exp(-abs(x))
    return (1.0 if x >= 0 else small) / (1.0 + small)


@inline_kernel
def sigmoid_and_loss(x: float, label: float) -> Any:
    """Return 1 / (1 + exp(−x)) and the log loss of the logit x, log(1 + exp(x)) − label·x."""
    small = np.exp(-abs(x))
    p = (1.0 if x >= 0 else small) / (1.0 + small)
    return p, np.log1p(small) + (max(x, 0.0) - label * x)
