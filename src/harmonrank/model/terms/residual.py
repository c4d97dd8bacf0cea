"""Residual: what the linear heads leave unexplained, in groups of coefficients.

`Heads` are linear in the coordinates of the scores, given the context. The residual adds to the
logit h_m of head m whatever else the training labels prove. Its inputs v are, for M scores:

    u_j        the coordinate of score j, in standard deviations from its mean
    r_j        the surprise of score j given the others and the context, standardised
    d          log(d²/M + 1/10), d² the squared Mahalanobis distance of all scores

Surprise and distance come from `Density`: rows with a broken or very noisy score stand out there.
Then eq. 7 of docs/default-method.md is

    residual_m = α_m + β_m h_m + Σ_j γ_mj u_j           (a) what the head itself should have been
               + Σ_f value_mf(c_f)                      (b) one number per context value
               + Σ_i curve_mi(v_i)                      (c) a response curve per input
               + Σ_jf slope_mjf(c_f) u_j                (d) a slope per score and context value
               + Σ_(i,k) surface_mik(v_i, v_k)          (e) score × score, score × its surprise,
                                                            score × distance
               + Σ_{f<g} pair_mfg(c_f, c_g)             (f) context × context

Curves are straight between `CURVE_KNOTS` knots, surfaces bilinear between `SURFACE_KNOTS`² ones,
both constant beyond the ends. A group that the evidence does not admit is zero. Where it admits
what a curve has between these knots, all curves are kept with `FINE_KNOTS`.
"""

__all__ = [
    "CURVE_KNOTS",
    "FINE_KNOTS",
    "NEAR",
    "REFINED",
    "SURFACE_KNOTS",
    "Residual",
    "context_pairs",
    "inputs_of",
    "residual_shapes",
    "residual_sizes",
    "surface_pairs",
]

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Annotated

import numpy as np

from harmonrank.support.errors import DataError
from harmonrank.support.storage.arrays import Array
from harmonrank.support.storage.stored import declared

CURVE_KNOTS, FINE_KNOTS = 16, 121
SURFACE_KNOTS = 7
_PLACES = np.linspace(0, CURVE_KNOTS - 1, FINE_KNOTS)
REFINED = np.maximum(0.0, 1.0 - np.abs(_PLACES[:, None] - np.arange(CURVE_KNOTS)))
"""What a curve is at fine knots, of what it is at its own, (FINE_KNOTS, CURVE_KNOTS)."""
NEAR = 0.1
"""Keeps the logarithm of a small distance within bounds."""
# Features with more combinations than this have no table of pairs.
_MOST_CELLS = 2500


def surface_pairs(M: int) -> list[tuple[int, int]]:
    """Return the pairs of inputs that have a surface, in order."""
    pairs = list(combinations(range(M), 2))
    return pairs + [(j, M + j) for j in range(M)] + [(j, 2 * M) for j in range(M)]


def context_pairs(slots: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the pairs of context features that have a table of their own, in order.

    >>> context_pairs((25, 4, 101))
    [(0, 1), (1, 2)]
    """
    pairs = combinations(range(len(slots)), 2)
    return [(f, g) for f, g in pairs if slots[f] * slots[g] <= _MOST_CELLS]


def inputs_of(away: np.ndarray, mean: np.ndarray, surprise: np.ndarray) -> np.ndarray:
    """Return u, r and d of each row, (rows, 2M + 1).

    Args:
        away: (rows, M) deviations from the context's mean, in standard deviations.
        mean: (rows, M) the context's mean, in the same unit.
        surprise: (rows, M, M) inverse covariance of the deviations in the context.
    """
    r = np.einsum("nij,nj->ni", surprise, away)
    distance = np.log((away * r).sum(axis=1) / away.shape[1] + NEAR)
    r /= np.sqrt(np.einsum("nii->ni", surprise))
    return np.concatenate([away + mean, r, distance[:, None]], axis=1)


def _bounded(*shape: int | str) -> Array:
    return Array(shape, low=-1e6, high=1e6)


@dataclass(frozen=True)
class Residual:
    """Coefficients of every group; M heads, M scores, V = 2M + 1 inputs, S context slots in all.

    Attributes:
        slots: Codes per context feature.
        low, high: (V,) first and last knot of each input.
        linear: (M, 2 + M): α, β, γ.
        value: (M, S).
        curve: (M, V, CURVE_KNOTS), or FINE_KNOTS where some curve bends between these.
        slope: (M, M, S).
        surface: (M, pairs of inputs, SURFACE_KNOTS, SURFACE_KNOTS).
        pair: (M, cells): the tables of all pairs of features, one after the other.
    """

    slots: tuple[int, ...]
    low: Annotated[np.ndarray, _bounded("inputs")]
    high: Annotated[np.ndarray, _bounded("inputs")]
    linear: Annotated[np.ndarray, _bounded("M", "linear")]
    value: Annotated[np.ndarray, _bounded("M", "slots")]
    curve: Annotated[np.ndarray, _bounded("M", "inputs", "knots")]
    slope: Annotated[np.ndarray, _bounded("M", "M", "slots")]
    surface: Annotated[np.ndarray, _bounded("M", "surfaces", SURFACE_KNOTS, SURFACE_KNOTS)]
    pair: Annotated[np.ndarray, _bounded("M", "cells")]

    def __post_init__(self) -> None:
        """Refuse stored curves with other knots."""
        if self.knots not in (CURVE_KNOTS, FINE_KNOTS):
            raise DataError(
                f"curves must have {CURVE_KNOTS} or {FINE_KNOTS} knots, got {self.knots}"
            )

    @classmethod
    def none(cls, M: int, slots: tuple[int, ...]) -> "Residual":
        """Return the residual of heads that need none."""
        arrays = {name: np.zeros(shape) for name, shape in residual_shapes(M, slots).items()}
        return cls(slots, **{**arrays, "high": np.ones(2 * M + 1)})

    def logits(self, heads: np.ndarray, inputs: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return what to add to the logit of each row and head, (rows, M): the definition.

        Args:
            heads: (rows, M) logits of the linear heads.
            inputs: (rows, 2M + 1), of `inputs_of`.
            codes: (rows, features) of the context.
        """
        M = heads.shape[1]
        contexts, of_row = np.unique(codes, axis=0, return_inverse=True)
        intercept, slope = self.affine(contexts.astype(np.int64))
        of_row = of_row.reshape(-1)
        total: np.ndarray = intercept[of_row] + self.linear[:, 1] * heads
        total += np.einsum("nmj,nj->nm", slope[of_row], inputs[:, :M])
        cell, share = self._knots(inputs, self.knots)
        for i in range(inputs.shape[1]):
            below, above = self.curve[:, i, cell[:, i]], self.curve[:, i, cell[:, i] + 1]
            total += (below + share[:, i] * (above - below)).T
        cell, share = self._knots(inputs, SURFACE_KNOTS)
        for number, (i, k) in enumerate(surface_pairs(M)):
            for a in (0, 1):
                for b in (0, 1):
                    corner = self.surface[:, number, cell[:, i] + a, cell[:, k] + b]
                    total += (corner * _part(share[:, i], a) * _part(share[:, k], b)).T
        return total

    def counts(self) -> np.ndarray:
        """Return how many groups of (b) to (f) each head has, (M,)."""
        M, ends = len(self.linear), np.cumsum([0, *self.slots])
        sizes = [self.slots[f] * self.slots[g] for f, g in context_pairs(self.slots)]
        cells = np.cumsum([0, *sizes])
        groups = [
            *(self.value[:, a:b] for a, b in pairwise(ends)),
            *np.moveaxis(self.curve, 1, 0),
            *(self.slope[:, j, a:b] for j in range(M) for a, b in pairwise(ends)),
            *np.moveaxis(self.surface, 1, 0),
            *(self.pair[:, a:b] for a, b in pairwise(cells)),
        ]
        counts: np.ndarray = np.zeros(M, int)
        for group in groups:
            counts += group.reshape(M, -1).any(axis=1)
        return counts

    @property
    def knots(self) -> int:
        """How many knots each curve has."""
        return int(self.curve.shape[2])

    @property
    def curved(self) -> np.ndarray:
        """Which inputs have a curve in some head."""
        return np.flatnonzero(self.curve.any(axis=(0, 2)))

    @property
    def joined(self) -> np.ndarray:
        """Which pairs of inputs have a surface in some head."""
        return np.flatnonzero(self.surface.any(axis=(0, 2, 3)))

    def affine(self, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return α, (b), (d) and (f) and γ, all but β and what bends, given the context.

        Intercepts are (contexts, M), slopes in u are (contexts, M, M).
        """
        intercept = np.tile(self.linear[:, 0], (len(contexts), 1))
        slope = np.tile(self.linear[:, 2:], (len(contexts), 1, 1))
        first = np.cumsum([0, *self.slots])
        for f in range(len(self.slots)):
            code = first[f] + contexts[:, f]
            intercept += self.value[:, code].T
            slope += np.moveaxis(self.slope[:, :, code], 2, 0)
        start = 0
        for f, g in context_pairs(self.slots):
            intercept += self.pair[:, start + contexts[:, f] * self.slots[g] + contexts[:, g]].T
            start += self.slots[f] * self.slots[g]
        return intercept, slope

    def _knots(self, inputs: np.ndarray, knots: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the knot at or below each input, and the share of the next one."""
        place = np.clip((inputs - self.low) / (self.high - self.low), 0.0, 1.0) * (knots - 1)
        cell = np.minimum(place.astype(np.int64), knots - 2)
        return cell, place - cell


def residual_sizes(M: int, slots: tuple[int, ...]) -> dict[str, int]:
    """Return the named sizes of the arrays of a `Residual`."""
    cells = sum(slots[f] * slots[g] for f, g in context_pairs(slots))
    return {
        "M": M,
        "slots": sum(slots),
        "inputs": 2 * M + 1,
        "linear": 2 + M,
        "surfaces": len(surface_pairs(M)),
        "cells": cells,
    }


def residual_shapes(M: int, slots: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each array of a `Residual` without fine curves."""
    sizes = {**residual_sizes(M, slots), "knots": CURVE_KNOTS}
    arrays = declared(Residual, {"slots": list(slots)}, sizes)
    return {name: tuple(int(size) for size in array.shape) for name, array in arrays.items()}


def _part(share: np.ndarray, upper: int) -> np.ndarray:
    return share if upper else 1 - share
