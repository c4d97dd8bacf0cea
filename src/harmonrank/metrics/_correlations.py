"""Rank correlation between columns, such as the labels of the objectives."""

__all__ = ["spearman"]

import numpy as np
from numpy.typing import ArrayLike

from harmonrank.metrics._auc import mid_ranks
from harmonrank.metrics._inputs import FloatArray, check_scores, sorting_order
from harmonrank.support.errors import UsageError


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
