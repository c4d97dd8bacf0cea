"""Scoring rows with missing scores: the heads' probabilities, averaged over what is missing.

With o the scores that are there and ℓ all of them, what a ranking needs is

    P(y_m | o, c) = ∫ P(y_m | ℓ, c) f(ℓ | o, c) dℓ,

the head averaged over the density of what is missing (`Gaps`). A head that is linear in ℓ given the
context has a normal logit there, of mean h and deviation s, and E σ(h + s x) is an integral over
one normal number x, which a Gauss–Hermite rule gives to many digits. Where some head has curves or
surfaces, the average over a fixed set of completions of the row is taken too, with and without
them, and what they add to the log odds of that average is added to the log odds of the integral.
"""

__all__ = ["MarginalScorer"]

from functools import cache, cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from harmonrank.model.density.density import distinct_contexts
from harmonrank.model.linear.heads import Heads
from harmonrank.model.missing.gaps import Gaps
from harmonrank.model.scorer.head_room import BLOCK, HeadRoom
from harmonrank.model.scorer.heads_kernels import average_rows
from harmonrank.model.scorer.heads_tables import HeadTables
from harmonrank.support.kernel import kernel
from harmonrank.support.logistic import score_logit
from harmonrank.support.parallel import each_part, edges_of

_NODES = 16
_POINTS = BLOCK  # A row's completions are a block of the kernel.
_PART_ROWS = 512


class MarginalScorer:
    """Turns scores, of which some are NaN, and context codes into probabilities."""

    def __init__(self, heads: Heads) -> None:
        self._heads = heads

    @cached_property
    def _tables(self) -> HeadTables:
        return HeadTables.of(self._heads)

    def probabilities(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the probability of each objective, (rows, M), of rows that miss something."""
        heads, (rows, M) = self._heads, scores.shape
        contexts, of_row = distinct_contexts(codes, heads.slots)
        of_row = np.broadcast_to(of_row, rows)  # which may share a context
        coordinates = np.ascontiguousarray(heads.coordinate(score_logit(scores)))
        gaps, p = Gaps.of(coordinates, of_row), np.empty((rows, M))
        for block, part in gaps.blocks(self._tables.made + _POINTS * M):
            conditional = gaps.conditional(heads.density, contexts, block)
            gaps.fill_block(coordinates, heads.density, contexts, block, part, conditional)
            root = conditional.root * heads.density.scale[:, None]
            # Pairs are in the order of their contexts.
            low, high = gaps.context[block][[0, -1]]
            some, pair = coordinates[gaps.rows[part]], gaps.pair[part] - block.start
            p[gaps.rows[part]] = self._averaged(
                some, pair, root, gaps.context[block] - low, contexts[low : high + 1]
            )
        return p

    def _averaged(
        self,
        coordinates: np.ndarray,
        pair: np.ndarray,
        root: np.ndarray,
        context: np.ndarray,
        contexts: np.ndarray,
    ) -> np.ndarray:
        """Return the mean probabilities of rows around their conditional means.

        Args:
            coordinates: (rows, M) coordinates, those that are missing by their mean.
            pair: (rows,) which pair each has.
            root: (pairs, M, M) of the covariance of what is missing.
            context: (pairs,) which context each has.
            contexts: (contexts, features) codes.
        """
        tables, (rows, M) = self._tables, coordinates.shape
        intercept, slope = self._heads.affine(contexts)
        tilt = slope[context] @ root  # (pairs, M, M): what each normal number adds to each head
        x, w = _rule()
        spread = np.exp(-np.sqrt((tilt**2).sum(axis=2))[:, :, None] * x)  # (pairs, M, nodes)
        sway = np.exp(-(tilt @ normal_points(M).T))  # (pairs, M, points)
        curved = tables.curves.last >= 0
        records = tuple(tables.records(contexts)) if curved else ()
        p, straight, bent = np.empty((3, rows, M))
        edges, of_row = edges_of(rows, _PART_ROWS), context[pair]
        completed = coordinates, of_row, pair, root, normal_points(M)

        def work(part: int) -> None:
            low, high = edges[part], edges[part + 1]
            _integrate(
                low, high, coordinates, of_row, pair, intercept, slope, spread, w,
                sway if curved else sway[:, :, :0], p, straight,
            )  # fmt: skip
            if curved:
                room = HeadRoom.of(M, tables.width)
                average_rows(low, high, completed, records, tuple(tables.curves), bent, tuple(room))
                _shift(low, high, straight, bent, p)

        each_part(work, len(edges) - 1)
        return p


@cache
def _rule() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of the mean over a standard normal number."""
    x, w = np.polynomial.hermite_e.hermegauss(_NODES)
    return x, w / w.sum()


@cache
def normal_points(M: int) -> np.ndarray:
    """Return a fixed set of points, (points, M), spread like M normal numbers.

    They are quasi-random, each with its mirror image, and every column has the variance 1.
    """
    ratio = 2.0
    for _ in range(64):  # The root of x^(M+1) = x + 1, which generalises the golden ratio.
        ratio = (1 + ratio) ** (1 / (M + 1))
    numbers = np.arange(1, _POINTS // 2 + 1)[:, None]
    fractions = (0.5 + numbers * ratio ** -np.arange(1.0, M + 1)) % 1
    z = np.array([[NormalDist().inv_cdf(fraction) for fraction in row] for row in fractions])
    z = np.concatenate([z, -z])
    return np.ascontiguousarray(z / z.std(axis=0))


@kernel
def _integrate(
    low: int, high: int, coordinates: Any, of_row: Any, pair: Any, intercept: Any, slope: Any,
    spread: Any, w: Any, sway: Any, p: Any, straight: Any,
) -> None:  # fmt: skip
    """Write E σ(h + s x) of the linear heads, and their average over the points, if any.

    What depends on no score is given: `spread` is exp(−s x) and `sway` that of each point.
    """
    M, K = coordinates.shape[1], sway.shape[2]
    for i in range(low, high):
        for m in range(M):
            h = intercept[of_row[i], m]
            for j in range(M):
                h += slope[of_row[i], m, j] * coordinates[i, j]
            total, e = 0.0, np.exp(-h)
            for q in range(len(w)):
                total += w[q] / (1.0 + e * spread[pair[i], m, q])
            p[i, m] = total
            total = 0.0
            for k in range(K):
                total += 1.0 / (1.0 + e * sway[pair[i], m, k])
            straight[i, m] = total / max(K, 1)


@kernel
def _shift(low: int, high: int, straight: Any, bent: Any, p: Any) -> None:
    """Multiply the odds of p by those of `bent` over those of `straight`."""
    for i in range(low, high):
        for m in range(p.shape[1]):
            a, b = straight[i, m], bent[i, m]
            odds = p[i, m] * b * (1.0 - a)
            p[i, m] = odds / max(odds + (1.0 - p[i, m]) * a * (1.0 - b), 1e-300)
