"""Influence: how much each objective moves the order of the candidates of a request.

A ranking is the differences of fused scores s = Σ_m s_m between candidates of one request, whose
variance is the sum over objectives of Cov(s_m, s). The influence of an objective is its share,

    Cov(s_m, s) / Var(s),  s_m = w_m p_m/(π_m(1−π_m)), or w_m κ_m p_m of a fit for requests,

over the pairs of each request, which counts by its rows, as in AUC within requests; over all pairs
of rows without requests. Shares add up to 1. What a request shares has none.
"""

__all__ = ["Influence", "equal_influence", "influence_of", "pair_covariance"]

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from warnings import warn

import numpy as np

from harmonrank.data import Log
from harmonrank.fusion.method import Method
from harmonrank.fusion.quality.areas import values_of
from harmonrank.support.errors import ConvergenceWarning

_STEPS, _NEAR, _VARIES = 500, 1e-9, 1e-9


@dataclass(frozen=True)
class Influence:
    """What orders some rows, and what would if no objective ruled.

    Attributes:
        shares: Of each objective; one that pulls against the others has less than 0.
        where: "within requests", or "over all rows" where no request has two.
        proposal: Weights of equal influence, where equal weights let one objective rule.
        auc: Of each objective with the present weights and with those; empty without labels.
    """

    shares: Mapping[str, float]
    where: str
    proposal: Mapping[str, float] = field(default_factory=dict)
    auc: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def caution(self) -> str | None:
        """Say which objective rules, what would be equal, and what that costs; None if none."""
        if not self.proposal:
            return None
        name = max(self.shares, key=lambda each: self.shares[each])
        weights = ",".join(f"{each}={weight:g}" for each, weight in self.proposal.items())
        text = (
            f"All weights are equal, yet '{name}' has {self.shares[name]:.0%} of the influence on "
            f"the order {self.where}. With equal influence: --weights {weights}"
        )
        if not self.auc:
            return f"{text}; what that costs, rows with labels tell."
        known = {name: pair for name, pair in self.auc.items() if np.isfinite(pair).all()}
        moved = ", ".join(f"{each} {a:.4f} to {b:.4f}" for each, (a, b) in known.items())
        # Of an unwanted objective a fall is a gain.
        total = sum(np.sign(self.proposal[name]) * (b - a) for name, (a, b) in known.items())
        return f"{text}; AUC {self.where} would go: {moved}; in sum {total:+.4f}."


def influence_of(model: Method, log: Log) -> Influence | None:
    """Measure what orders the rows of a log; None of a method without probabilities."""
    names, weights, request = model.schema.names, model.fuser.weights(), log.request
    if not model.traits.probabilities or log.rows < 2:
        return None
    where = "within requests"
    if request is None or len(np.unique(request)) == log.rows:
        # All rows are then as candidates of one request.
        where, request = "over all rows", np.zeros(log.rows, np.int64)
    parts = model.fuser.parts_of(model.probabilities(log), weights)
    covariance = pair_covariance(parts, request)
    shares = covariance.sum(axis=1) / max(float(covariance.sum()), np.finfo(float).tiny)
    influence = Influence(dict(zip(names, shares.tolist(), strict=True)), where)
    sizes = np.abs(weights.counted[weights.counted != 0])
    moving = int(_moving(covariance).sum())
    chosen = weights.by_value or moving < 2 or np.ptp(sizes) > 1e-9 * sizes.max()
    # Of two objectives one always has half, and two may share all of it.
    if chosen or shares.max() <= max(0.5, 1.5 / moving, 1.5 * np.sort(shares)[-2]):
        return influence
    scaled = weights.counted * equal_influence(covariance)
    scaled *= len(sizes) / np.abs(scaled).sum()
    proposal = {name: float(f"{w:.3g}") for name, w in zip(names, scaled.tolist(), strict=True)}
    if log.labels is None:
        return replace(influence, proposal=proposal)
    before, after = (
        values_of(model.score(log, weights=asked), log, within=where == "within requests").tolist()
        for asked in (None, proposal)
    )
    moved = dict(zip(names, zip(before, after, strict=True), strict=True))
    return replace(influence, proposal=proposal, auc=moved)


def pair_covariance(parts: np.ndarray, request: np.ndarray) -> np.ndarray:
    """Return the covariance of columns over pairs of one request, (M, M).

    The mean over requests by their rows of ½ the mean product of differences over pairs.

    >>> pair_covariance(np.array([[1.0], [3.0], [10.0]]), np.array([7, 7, 8]))
    array([[1.33333333]])
    """
    code, size = np.unique(request, return_inverse=True, return_counts=True)[1:]
    mean = np.stack([np.bincount(code, column) for column in parts.T], axis=1) / size[:, None]
    away = parts - mean[code]
    counts = (size / np.maximum(size - 1, 1))[code, None]
    covariance: np.ndarray = away.T @ (counts * away) / len(parts)
    return covariance


def _moving(covariance: np.ndarray) -> np.ndarray:
    """Return which parts vary by more than rounding."""
    spread = np.sqrt(np.diag(covariance))
    return np.asarray(spread > _VARIES * spread.max(initial=0.0))


def equal_influence(covariance: np.ndarray) -> np.ndarray:
    """Return positive factors of the parts with which all have the same influence.

    They minimise ½ fᵀCf − Σ log f_m: f_m (Cf)_m = 1. A step of Newton, shortened by the length that
    the curvature gives it, stays above 0 and falls from anywhere (Nesterov, 2004, section 4.1.5). A
    part that does not vary keeps its factor 1.

    >>> equal_influence(np.diag([4.0, 1.0]))
    array([0.5, 1. ])
    """
    spread = np.sqrt(np.diag(covariance))
    moves, factors = _moving(covariance), np.ones(len(spread))
    scale = spread[moves]
    correlation, f = covariance[np.ix_(moves, moves)] / np.outer(scale, scale), np.ones(len(scale))
    for _ in range(_STEPS):
        slope = correlation @ f - 1 / f
        step = np.linalg.solve(correlation + np.diag(f**-2.0), slope)
        length = float(np.sqrt(max(slope @ step, 0.0)))
        f -= step / (1 + length)
        if length < _NEAR:
            break
    else:
        warn("Weights of equal influence did not converge.", ConvergenceWarning, stacklevel=2)
    factors[moves] = f / scale
    return factors
