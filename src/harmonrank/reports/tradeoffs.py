"""Trade-offs of two objectives: the frontier that one fit reaches by changing weights."""

__all__ = ["Tradeoff", "tradeoffs_of"]

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from harmonrank.data import Log
from harmonrank.evaluation import Leaderboard
from harmonrank.fusion import Method
from harmonrank.fusion.quality.outcomes import best_terms, outcomes_of, true_outcomes
from harmonrank.metrics import Outcomes, auc, hypervolume, pareto_front, spearman

_SHARES = np.linspace(0, 1, 21)
_MOST_PAIRS = 4
_MOST_ROWS = 100_000
_CHANCE = (0.5, 0.5)


@dataclass(frozen=True)
class Tradeoff:
    """Two objectives against each other.

    Attributes:
        shares: Weight of the first objective at each point; the second has the rest.
        points: (AUC of first, AUC of second) at each share.
        unbeaten: Which points no other point beats.
        volume: Hypervolume of the points above chance, (½, ½).
        best: The frontier of the true probabilities, in a world.
        others: Every method's own point, by name.
    """

    first: str
    second: str
    shares: tuple[float, ...]
    points: tuple[tuple[float, float], ...]
    unbeaten: tuple[bool, ...]
    volume: float
    best: tuple[tuple[float, float], ...]
    best_volume: float | None
    others: dict[str, tuple[float, float]]


def tradeoffs_of(model: Method, log: Log, board: Leaderboard) -> tuple[Tradeoff, ...]:
    """Sweep the weights of the pairs of objectives whose scores agree least.

    Needs a method with probabilities, whose weights enter after the fit; others give none. In a
    world the AUC is by true probabilities, without label noise.
    """
    names = log.schema.names
    if not model.traits.probabilities or len(names) < 2:
        return ()
    log = log.sampled(_MOST_ROWS)
    labels = outcomes_of(log) if log.truth is None else true_outcomes(log)
    agreement = np.nan_to_num(spearman(log.scores))
    pairs = sorted(combinations(range(len(names)), 2), key=lambda pair: agreement[pair])
    even = np.ones(len(names))
    gains, best = model.fuser.gains(log, even), None
    if log.truth is not None and log.schema.plain:
        pi = log.truth.mean(axis=0)
        best = log.truth / (pi * (1 - pi))
    elif log.truth is not None:
        best = best_terms(log, even)
    return tuple(_tradeoff(pair, gains, best, labels, log, board) for pair in pairs[:_MOST_PAIRS])


def _tradeoff(
    pair: tuple[int, int],
    gains: np.ndarray,
    possible: np.ndarray | None,
    labels: Any,
    log: Log,
    board: Leaderboard,
) -> Tradeoff:
    a, b = pair
    first, second = log.schema.names[a], log.schema.names[b]
    signs = log.schema.signs[list(pair)]

    def good(areas: np.ndarray) -> np.ndarray:
        """Return what is better if it is more: the AUC, or 1 − AUC of an unwanted objective."""
        return np.where(signs < 0, 1 - areas, areas)

    weight = log.sample_weight
    both = labels.columns(pair) if isinstance(labels, Outcomes) else labels[:, pair]
    points = _sweep(gains[:, pair], signs, both, weight)
    best = np.empty((0, 2))
    if possible is not None:
        best = _sweep(possible[:, pair], signs, both, weight)
    others = {}
    for name, quality in board.qualities.items():
        others[name] = (quality.areas[first], quality.areas[second])
    return Tradeoff(
        first=first,
        second=second,
        shares=tuple(_SHARES.tolist()),
        points=_pairs(points),
        unbeaten=tuple(pareto_front(good(points)).tolist()),
        volume=hypervolume(good(points), _CHANCE),
        best=_pairs(best),
        best_volume=hypervolume(good(best), _CHANCE) if len(best) else None,
        others=others,
    )


def _sweep(
    gains: np.ndarray, signs: np.ndarray, labels: Any, weight: np.ndarray | None
) -> np.ndarray:
    """Return both AUCs (shares, 2) as the weight goes from the second objective to the first."""
    scaled = signs * gains
    return np.stack(
        [
            auc(t * scaled[:, 0] + (1 - t) * scaled[:, 1], labels, sample_weight=weight)
            for t in _SHARES
        ]
    )


def _pairs(points: np.ndarray) -> tuple[tuple[float, float], ...]:
    return tuple((float(x), float(y)) for x, y in points)
