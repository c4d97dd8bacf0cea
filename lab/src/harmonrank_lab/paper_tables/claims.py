"""Claims: the paper's figures, and the rule by which a claim is held, not held, or open.

The rule is one for all: a claim is a difference that should be above 0. Its 95 % interval comes
from seeds, which in a world draw other rows too; on a folder, whose rows stay the same, resampled
requests are added. All above 0: held. All below: did not hold. Else, or with one seed, which
says nothing about chance: cannot be told.
"""

__all__ = [
    "BUCKETS",
    "COMPONENTS",
    "INFERENCE",
    "LOSSES",
    "MAIN",
    "ONLINE",
    "PAIRS",
    "SKEW",
    "SPEED",
    "estimate_of",
    "judge",
    "student_quantile",
    "verdict",
]

from math import pi, sqrt, tan
from statistics import NormalDist
from typing import Literal

import numpy as np

from harmonrank_lab.paper_tables._table import Estimate, Outcome, Verdict

LEVEL = 0.95

MAIN = {
    ("qkvideo", 3): {
        "mbce": 2.2420,
        "label-aggregation": 2.4040,
        "reinforce": 2.2488,
        "harmonrank-paper": 2.4617,
    },
    ("qkvideo", 5): {
        "mbce": 3.6465,
        "label-aggregation": 3.8311,
        "reinforce": 3.9074,
        "harmonrank-paper": 3.9186,
    },
    ("elive", 3): {
        "mbce": 2.1555,
        "label-aggregation": 2.0765,
        "reinforce": 2.1930,
        "harmonrank-paper": 2.2191,
    },
    ("elive", 5): {
        "mbce": 3.6682,
        "label-aggregation": 3.6883,
        "reinforce": 3.7467,
        "harmonrank-paper": 3.7522,
    },
}
"""AUC-sum by data set, number of objectives and method."""

LOSSES = {
    "pairwise-square": 3.7415,
    "pairwise-logistic": 3.7433,
    "aucm": 3.7412,
    "harmonrank-paper": 3.7522,
}
COMPONENTS = {
    "self_attention": 3.7494,
    "personalised": 3.7464,
    "cross_attention": 3.7512,
    "gate": 3.7362,
    "linear": 3.7493,
}
BUCKETS = {None: 3.7470, 100: 3.7507, 300: 3.7522, 600: 3.7492}
SPEED = {
    "mbce": 27_400.0,
    "pairwise-logistic": 24_800.0,
    "aucm": 26_900.0,
    "harmonrank-paper": 26_000.0,
}
"""Training rows per second."""

INFERENCE = {"ms": 4.0, "rows/s": 2_500_000.0, "parameters": 2_400.0, "FLOPs": 273e6}
"""On a T4, per batch of 10,240."""

SKEW = {
    "mbce": {1_000: 3.67, 10_000: 3.48, 100_000: 3.31},
    "pairwise-logistic": {1_000: 3.74, 10_000: 3.60, 100_000: 3.58},
    "harmonrank-paper": {1_000: 3.75, 10_000: 3.74, 100_000: 3.70},
}
"""AUC-sum by method and negatives per purchase in training."""

PAIRS = (("buy", "follow"), ("comment", "buy"), ("comment", "follow"), ("long_view", "follow"))
"""The pairs of the trade-off figure; the paper prints no numbers for them."""

ONLINE = {
    "reinforce": {
        "buy": 1.547,
        "comment": -0.253,
        "follow": 0.302,
        "long_view": -0.238,
        "like": 0.817,
    },
    "harmonrank-paper": {
        "buy": 2.635,
        "comment": 3.034,
        "follow": 0.451,
        "long_view": 0.290,
        "like": 1.673,
    },
}
"""Lift over MBCE in per cent; the paper's watch time is our long view."""


def student_quantile(freedom: int, level: float = LEVEL) -> float:
    """Return how many standard errors a mean of few values reaches to either side.

    Closed forms for one and two degrees of freedom, else the expansion around the normal
    quantile in 1/freedom, within 0.2 % of Student's t at the level of 95 %.

    >>> round(student_quantile(1), 2), round(student_quantile(2), 2), round(student_quantile(9), 2)
    (12.71, 4.3, 2.26)
    """
    if freedom < 1:
        raise ValueError(f"`freedom` must be at least 1. Got {freedom}.")
    if freedom == 1:
        return tan(pi * level / 2)
    if freedom == 2:
        return level * sqrt(2 / (1 - level**2))
    z = NormalDist().inv_cdf(0.5 + level / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return float(z + sum(term / freedom**power for power, term in enumerate(terms, start=1)))


def estimate_of(values: np.ndarray) -> Estimate:
    """Return the mean over seeds with its interval.

    Two parts add up in squares: t·s/√K of the K seeds, and z times the standard deviation of
    the mean over resampled rows, where there are any.

    >>> estimate = estimate_of(np.array([[1.0], [2.0], [3.0]]))
    >>> estimate.mean, round(estimate.low, 3)
    (2.0, -0.484)

    Args:
        values: (seeds, 1 + replicates): a seed's value, then the same on each resampled log.
    """
    seeds = len(values)
    mean = float(values[:, 0].mean())
    if seeds < 2:
        return Estimate(mean, None, None, seeds)
    spread = float(values[:, 0].std(ddof=1)) / sqrt(seeds)
    variance = (student_quantile(seeds - 1) * spread) ** 2
    if values.shape[1] > 1:
        z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
        variance += (z * float(np.nanstd(values[:, 1:].mean(axis=0), ddof=1))) ** 2
    return Estimate(mean, mean - sqrt(variance), mean + sqrt(variance), seeds)


def judge(ours: Estimate | None) -> Outcome:
    """Return what becomes of a claim whose difference should be above 0.

    >>> judge(Estimate(0.2, 0.1, 0.3, 3)), judge(Estimate(0.2, None, None, 1))
    ('held', 'cannot be told')
    """
    if ours is None or ours.low is None or ours.high is None:
        return "cannot be told"
    if ours.low > 0:
        return "held"
    return "did not hold" if ours.high < 0 else "cannot be told"


def verdict(
    claim: str,
    values: np.ndarray | None,
    *,
    paper: float | None = None,
    unit: str = "AUC-sum",
    source: Literal["paper", "ours"] = "paper",
) -> Verdict:
    """Judge a claim by its difference per seed; None where a part of it could not be had."""
    ours = None if values is None else estimate_of(values)
    return Verdict(claim, source, judge(ours), unit, paper, ours)
