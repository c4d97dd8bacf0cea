"""Scoring rows with missing scores: the heads' probabilities, averaged over what is missing.

With o the scores that are there and ℓ all of them, what a ranking needs is

    P(y_m | o, c) = ∫ P(y_m | ℓ, c) f(ℓ | o, c) dℓ,

the head averaged over the law of what is missing (`Gaps`). A head that is linear in ℓ given the
context has a normal logit there, of mean h and deviation s, and E σ(h + s x) is an integral over
one normal number x, which a Gauss–Hermite rule gives to many digits. Where some head has curves or
surfaces, the average over a fixed set of completions of the row is taken too, with and without
them, and what they add to the log odds of that average is added to the log odds of the integral.
"""

__all__ = ["MarginalScorer", "normal_points"]

from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np

from harmonrank.kernel import kernel
from harmonrank.model.coordinate import logit_of
from harmonrank.model.gaps import Gaps
from harmonrank.model.heads import Heads
from harmonrank.model.heads_score import HeadScorer
from harmonrank.model.law import distinct_contexts

_NODES = 16
_FEWEST_POINTS = 32
_PIECE = 2048  # Rows whose completions are scored at once.


class MarginalScorer:
    """Turns scores, of which some are NaN, and context codes into probabilities."""

    def __init__(self, heads: Heads, scorer: HeadScorer) -> None:
        self._heads, self._scorer = heads, scorer
        self._bends = len(heads.residual.curved) + len(heads.residual.joined) > 0

    def probabilities(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the probability of each objective, (rows, M), of rows that miss something."""
        heads = self._heads
        contexts, of_row = distinct_contexts(codes, heads.slots)
        places = np.ascontiguousarray(heads.coordinate(logit_of(scores)))
        gaps, p = Gaps.of(places, of_row), np.empty(places.shape)
        gaps.fill(places, heads.law, contexts)
        for block, part in gaps.blocks():
            there = contexts[gaps.context[block]]
            root = gaps.conditional(heads.law, contexts, block).root * heads.law.scale[:, None]
            intercept, slope = heads.affine(there)
            rows, pair = gaps.rows[part], gaps.pair[part] - block.start
            tilt = slope @ root  # (pairs, M, M): what each normal number adds to each head
            logits = np.empty((len(rows), places.shape[1]))
            _linear(rows, pair, places, intercept, slope, logits)
            spread = np.sqrt((tilt**2).sum(axis=2))
            found = np.empty_like(logits)
            _integrate(pair, logits, spread, *_rule(), found)
            if self._bends:
                for low in range(0, len(rows), _PIECE):
                    some = slice(low, low + _PIECE)
                    given = rows[some], pair[some], places, codes, root, tilt, logits[some]
                    self._bend(*given, found[some])
            p[rows] = found
        return p

    def _bend(
        self,
        rows: np.ndarray,
        pair: np.ndarray,
        places: np.ndarray,
        codes: np.ndarray,
        root: np.ndarray,
        tilt: np.ndarray,
        logits: np.ndarray,
        p: np.ndarray,
    ) -> None:
        """Add to log odds what curves and surfaces add to those of the average completion."""
        z = normal_points(places.shape[1])  # (points, M)
        whole = np.empty((len(rows) * len(z), places.shape[1]))
        straight = np.empty_like(p)
        _complete(rows, pair, places, root, z, whole)
        _average(pair, logits, tilt, z, straight)
        scores = 1 / (1 + np.exp(-self._heads.coordinate.inverse(whole)))
        each = self._scorer.probabilities(scores, np.repeat(codes[rows], len(z), axis=0))
        bent = np.empty_like(p)
        _means(each, bent)
        _shift(straight, bent, p)


@cache
def _rule() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of the mean over a standard normal number."""
    x, w = np.polynomial.hermite_e.hermegauss(_NODES)
    return x, w / w.sum()


@cache
def normal_points(M: int) -> np.ndarray:
    """Return a fixed set of points, (points, M), with the first moments of M normal numbers.

    Quasi-random, with each point's mirror image, and of unit covariance.
    """
    half = max(_FEWEST_POINTS // 2, 2 * M)
    ratio = 2.0
    for _ in range(64):  # The root of x^(M+1) = x + 1, which generalises the golden ratio.
        ratio = (1 + ratio) ** (1 / (M + 1))
    shares = (0.5 + np.arange(1, half + 1)[:, None] * ratio ** -np.arange(1.0, M + 1)) % 1
    normal = NormalDist()
    z = np.array([[normal.inv_cdf(share) for share in row] for row in shares])
    z = np.concatenate([z, -z])
    L = np.linalg.cholesky(z.T @ z / len(z))
    return np.ascontiguousarray(np.linalg.solve(L, z.T).T)


@kernel
def _linear(rows: Any, pair: Any, places: Any, intercept: Any, slope: Any, logits: Any) -> None:
    for i in range(len(rows)):
        for m in range(logits.shape[1]):
            total = intercept[pair[i], m]
            for j in range(places.shape[1]):
                total += slope[pair[i], m, j] * places[rows[i], j]
            logits[i, m] = total


@kernel
def _integrate(pair: Any, logits: Any, spread: Any, x: Any, w: Any, p: Any) -> None:
    """Write E σ(h + s x)."""
    for i in range(len(pair)):
        for m in range(logits.shape[1]):
            total = 0.0
            for q in range(len(x)):
                total += w[q] / (1.0 + np.exp(-(logits[i, m] + spread[pair[i], m] * x[q])))
            p[i, m] = total


@kernel
def _complete(rows: Any, pair: Any, places: Any, root: Any, z: Any, whole: Any) -> None:
    """Write all completions of each row, one after the other."""
    K, M = z.shape
    for i in range(len(rows)):
        for k in range(K):
            for m in range(M):
                t = places[rows[i], m]
                for j in range(m + 1):
                    t += root[pair[i], m, j] * z[k, j]
                whole[i * K + k, m] = t


@kernel
def _average(pair: Any, logits: Any, tilt: Any, z: Any, p: Any) -> None:
    """Write the average of the linear heads over the same completions."""
    K, M = z.shape
    for i in range(len(pair)):
        for m in range(M):
            total = 0.0
            for k in range(K):
                h = logits[i, m]
                for j in range(M):
                    h += tilt[pair[i], m, j] * z[k, j]
                total += 1.0 / (1.0 + np.exp(-h))
            p[i, m] = total / K


@kernel
def _means(each: Any, means: Any) -> None:
    """Write the mean of each row's completions."""
    K = len(each) // len(means)
    for i in range(len(means)):
        for m in range(means.shape[1]):
            total = 0.0
            for k in range(K):
                total += each[i * K + k, m]
            means[i, m] = total / K


@kernel
def _shift(straight: Any, bent: Any, p: Any) -> None:
    """Multiply the odds of p by those of `bent` over those of `straight`."""
    for i in range(len(p)):
        for m in range(p.shape[1]):
            a, b = straight[i, m], bent[i, m]
            odds = p[i, m] * b * (1.0 - a)
            p[i, m] = odds / max(odds + (1.0 - p[i, m]) * a * (1.0 - b), 1e-300)
