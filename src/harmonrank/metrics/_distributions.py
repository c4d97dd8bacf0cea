"""Columns compared by their distributions: rank correlation, and how far a score has moved."""

import numpy as np
from numpy.typing import ArrayLike

from harmonrank.metrics._auc import mid_ranks
from harmonrank.metrics._inputs import FloatArray, check_scores, sorting_order
from harmonrank.support.errors import UsageError

_BINS = 10


def spearman(values: ArrayLike) -> FloatArray:
    """Return Spearman's ρ between all columns of (n, M): Pearson's correlation of their ranks.

    Tied values share their mean rank. A column without spread correlates with nothing: its row and
    column are nan, also on the diagonal. NaN counts as missing: a pair of columns is then compared
    on the rows that have both.

    >>> spearman([[1, 10], [2, 30], [3, 20]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    table = np.asarray(values)
    if table.ndim != 2:
        raise UsageError(f"`values` must have shape (rows, columns). Got {table.shape}.")
    if table.dtype.kind == "f" and np.isnan(table).any():
        return _pairwise(table)
    ranks = np.empty(table.shape)
    for m in range(table.shape[1]):
        column = check_scores(table[:, m], f"values[:, {m}]")
        # Mid-ranks come centred, which is all that Pearson's correlation asks for.
        ranks[:, m] = mid_ranks(column, sorting_order(column), np.empty(0))
    covariance = ranks.T @ ranks
    spread = np.sqrt(np.diag(covariance))
    scale = np.outer(spread, spread)
    rho = np.full(covariance.shape, np.nan)
    np.divide(covariance, scale, out=rho, where=scale > 0)
    np.clip(rho, -1, 1, out=rho)
    np.fill_diagonal(rho, np.where(spread > 0, 1.0, np.nan))
    return rho


def _pairwise(table: FloatArray) -> FloatArray:
    M, there = table.shape[1], ~np.isnan(table)
    rho = np.full((M, M), np.nan)
    for i in range(M):
        for j in range(i + 1):
            both = there[:, i] & there[:, j]
            if both.any():
                rho[i, j] = rho[j, i] = spearman(table[both][:, [i, j]])[0, int(i != j)]
    return rho


def population_stability_index(before: ArrayLike, now: ArrayLike) -> float:
    """Return the population stability index, PSI = Σ_b (q_b − p_b) ln(q_b / p_b).

    p_b and q_b are the shares of the scores before and now in bin b. The bins are cut at the
    deciles of the scores before; values that many rows share make fewer of
    them. Missing scores (NaN) are a bin of their own, where there are any. Half a row is added to
    every bin, so that an empty one gives a large number and not an infinite one.

    By custom less than 0.1 is no change, and more than 0.25 a large one. Chance alone gives about
    9 (1/n + 1/m) where nothing has changed, n and m being the numbers of rows.

    Args:
        before: (n,) scores to compare with.
        now: (m,) scores.

    Returns:
        nan if one of the two has no row.

    >>> before = np.linspace(0, 1, 1000)
    >>> population_stability_index(before, before)
    0.0
    >>> round(population_stability_index(before, before**2), 3)
    0.375
    """
    old, new = _scores("before", before), _scores("now", now)
    if not len(old) or not len(new):
        return float("nan")
    known = old[~np.isnan(old)]
    # The quantiles are observed values, so that shares do not depend on how ties are split.
    last = -(-len(known) * np.arange(1, _BINS) // _BINS) - 1
    edges = np.unique(np.sort(known)[last]) if len(known) else known
    p, q = _counts(old, edges), _counts(new, edges)
    used = np.ones(len(p), dtype=bool)
    used[-1] = bool(p[-1] or q[-1])
    p, q = (_shares(count[used]) for count in (p, q))
    return float(((q - p) * np.log(q / p)).sum())


def _scores(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise UsageError(
            f"`{name}` must be numbers of shape (rows,), scores of one column. Got dtype "
            f"{array.dtype} and shape {array.shape}."
        )
    scores: FloatArray = array.astype(np.float64, copy=False)
    return scores


def _counts(scores: FloatArray, edges: FloatArray) -> FloatArray:
    """Count the scores up to each edge, those above the last one, and the missing ones."""
    # Missing scores have a place of their own, after the last bin.
    place = np.where(np.isnan(scores), len(edges) + 1, np.searchsorted(edges, scores))
    return np.bincount(place, minlength=len(edges) + 2).astype(np.float64)


def _shares(counts: FloatArray) -> FloatArray:
    smoothed: FloatArray = (counts + 0.5) / (counts.sum() + 0.5 * len(counts))
    return smoothed
