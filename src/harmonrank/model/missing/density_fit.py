"""Fitting the density to rows some of whose coordinates are missing: expectation and maximisation.

What is missing is taken for its conditional mean under the present density, and its conditional
covariance is added to the second moments (Dempster, Laird and Rubin, 1977). So a row counts by
what it has, and what is missing may depend on the context and on what is there: the estimates are
those of the largest likelihood if what is missing does not depend on itself beyond that.
"""

__all__ = ["INCOMPLETE_ROWS", "fit_incomplete_density", "incomplete_sums"]

from dataclasses import replace

import numpy as np

from harmonrank.model.density.density import Density, distinct_contexts
from harmonrank.model.density.density_sums import DensitySums, Unseen, fit_density
from harmonrank.model.missing.gaps import Gaps

INCOMPLETE_ROWS = 100_000
"""Rounds look at so many rows or a few more; of a longer log, the last at all."""

_ROUNDS = 20
_ENOUGH = 2e-3  # Standard deviations, and units of correlation.


def fit_incomplete_density(
    coordinates: np.ndarray,
    codes: np.ndarray,
    slots: tuple[int, ...],
    weight: np.ndarray | None = None,
    steady: np.ndarray | None = None,
) -> Density:
    """Estimate the density of (rows, M) coordinates of which some may be NaN.

    The steady part of the variances is estimated too, where it is not given.
    """
    if not np.isnan(coordinates).any():
        return fit_density(coordinates, codes, slots, weight, steady=steady)
    w = np.ones(len(coordinates)) if weight is None else weight
    some = slice(None, None, max(1, len(coordinates) // INCOMPLETE_ROWS))
    density = _first(coordinates[some], codes[some], slots, w[some], steady)
    density = _improved(density, coordinates[some], codes[some], slots, w[some], _ROUNDS, steady)
    if some.step == 1:
        return density
    return _improved(density, coordinates, codes, slots, w, 1, steady)


def incomplete_sums(
    coordinates: np.ndarray,
    codes: np.ndarray,
    slots: tuple[int, ...],
    weight: np.ndarray | None,
    density: Density | None = None,
    origin: np.ndarray | None = None,
) -> DensitySums:
    """Return the moments of coordinates of which some are NaN, taken as a density says.

    Args:
        coordinates: (rows, M).
        codes: (rows, features) of the context.
        slots: Codes per feature.
        weight: (rows,).
        density: That of the same rows if left out.
        origin: (M,), from which moments are taken.
    """
    if density is None:
        density = fit_incomplete_density(coordinates, codes, slots, weight)
    w = np.ones(len(coordinates)) if weight is None else weight
    contexts, of_row = distinct_contexts(codes, slots)
    gaps, filled = Gaps.of(coordinates, of_row), coordinates.copy()
    gaps.fill(filled, density, contexts)
    unseen = _unseen(gaps, density, contexts, w)
    scaled = Unseen(
        unseen.covariance * np.outer(density.scale, density.scale),
        unseen.squares * density.scale**2,
    )
    return DensitySums.of(filled, codes, slots, w, scaled, origin)


def _improved(
    density: Density,
    coordinates: np.ndarray,
    codes: np.ndarray,
    slots: tuple[int, ...],
    w: np.ndarray,
    rounds: int,
    steady: np.ndarray | None,
) -> Density:
    """Fill what is missing and fit again, until nothing changes or so many times."""
    contexts, of_row = distinct_contexts(codes, slots)
    gaps, filled = Gaps.of(coordinates, of_row), coordinates.copy()
    for _ in range(rounds):
        gaps.fill(filled, density, contexts)
        unseen = _unseen(gaps, density, contexts, w)
        before, density = density, fit_density(filled, codes, slots, w, unseen, steady)
        if _change(before, density) < _ENOUGH:
            break
    return density


def _first(
    coordinates: np.ndarray,
    codes: np.ndarray,
    slots: tuple[int, ...],
    w: np.ndarray,
    steady: np.ndarray | None,
) -> Density:
    """Return a first guess: moments of what is there, pair by pair."""
    contexts, of_row = distinct_contexts(codes, slots)
    there = ~np.isnan(coordinates)
    mass = np.maximum(w @ there, 1e-300)
    known = np.where(there, coordinates, 0.0)
    mean = w @ known / mass
    variance = w @ np.where(there, (coordinates - mean) ** 2, 0.0) / mass
    lost = np.stack([np.bincount(of_row, w * ~column, len(contexts)) for column in there.T], axis=1)
    unseen = Unseen(np.diag(variance * lost.sum(axis=0)), variance * lost)
    density = fit_density(np.where(there, coordinates, mean), codes, slots, w, unseen, steady)
    away = np.where(there, coordinates - density.centre_of(contexts)[of_row], 0.0)
    seen_both = np.maximum((w[:, None] * there).T @ there.astype(np.float64), 1.0)
    return replace(density, covariance=(w[:, None] * away).T @ away / seen_both)


def _unseen(gaps: Gaps, density: Density, contexts: np.ndarray, w: np.ndarray) -> Unseen:
    """Add up the conditional covariance of what is missing."""
    M = len(density.base)
    total, squares = np.zeros((M, M)), np.zeros((len(contexts), M))
    mass = np.bincount(gaps.pair, w[gaps.rows], len(gaps.context))
    for block, _ in gaps.blocks():
        covariance = mass[block, None, None] * gaps.conditional(density, contexts, block).covariance
        total += covariance.sum(axis=0)
        np.add.at(squares, gaps.context[block], np.einsum("pmm->pm", covariance))
    return Unseen(total, squares)


def _change(before: Density, now: Density) -> float:
    """Return the largest change of a mean or a correlation."""
    deviation = np.exp(now.log_variance / 2)
    mean = np.abs(now.base - before.base) / deviation
    tie = np.abs(now.covariance - before.covariance) / np.outer(deviation, deviation)
    return float(max(mean.max(), tie.max()))
