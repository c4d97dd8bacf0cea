"""Judging: how far the first method is ahead, within requests and over all rows."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonrank.metrics import auc, bootstrap_areas, percentiles

FloatArray = NDArray[np.float64]

MEASURES = {"within_requests": "within requests", "all_rows": "over all rows"}
_REPLICATES = 400


def judged(
    scores: Mapping[str, FloatArray],
    labels: NDArray[np.int64],
    weights: FloatArray,
    requests: NDArray[Any],
    users: NDArray[Any],
    seed: int,
) -> tuple[dict[str, list[FloatArray]], list[dict[str, Any]]]:
    """Return each method's AUCs within requests and over all rows, and the first's differences.

    Users are resampled with all their rows, every method on the same draws, so that differences
    are paired; an interval is the middle 95 % of the resampled differences of AUC-sums.

    Args:
        scores: Fused score of each method.
        labels: (rows, objectives).
        weights: Of the objectives in the sums.
        requests: Of each row; all rows of a request are of one user.
        users: Of each row.
        seed: Of the draws.
    """
    areas, drawn = {}, {}
    for name, fused in scores.items():
        within = _resampled_within(fused, labels, requests, users, seed)
        whole = bootstrap_areas(fused, labels, groups=users, replicates=_REPLICATES, seed=seed)
        areas[name] = [within[0], auc(fused, labels)]
        drawn[name] = [within[1:], whole]
    first, *others = scores
    differences = []
    for name in others:
        difference: dict[str, Any] = {"method": name}
        for k, measure in enumerate(MEASURES):
            gap = float((areas[first][k] - areas[name][k]) @ weights)
            interval = percentiles(gap, (drawn[first][k] - drawn[name][k]) @ weights, 0.95)
            difference[measure] = asdict(interval) if np.isfinite(gap) else None
        differences.append(difference)
    return areas, differences


def _resampled_within(
    fused: FloatArray, labels: Any, requests: NDArray[Any], users: NDArray[Any], seed: int
) -> FloatArray:
    """Return the AUCs within requests of all users, and then those of resampled users."""
    area, say, first = within_requests(fused, labels, requests)
    _, user = np.unique(users, return_inverse=True)
    sums = np.zeros((int(user.max()) + 1, 2, labels.shape[1]))
    np.add.at(sums, user[first], np.stack([say * area, say], axis=1))
    rng = np.random.default_rng(seed)
    draws = [rng.poisson(1.0, len(sums)) for _ in range(_REPLICATES)]
    totals = np.stack([np.tensordot(w, sums, 1) for w in [np.ones(len(sums)), *draws]])
    with np.errstate(invalid="ignore"):
        return np.asarray(totals[:, 0] / totals[:, 1])


def within_requests(
    fused: FloatArray, labels: NDArray[np.int64], requests: NDArray[Any]
) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """Return AUC and say of each request, (requests, objectives), and its first row.

    Its say is its rows, or 0 where it has one class only, as in `harmonrank.metrics.grouped_auc`.
    """
    frame = pl.DataFrame({"request": requests, "fused": fused}).with_row_index("row")
    frame = frame.with_columns(rank=pl.col("fused").rank("average").over("request"))
    y = pl.DataFrame(labels, schema=[f"y{m}" for m in range(labels.shape[1])])
    table = frame.hstack(y).group_by("request", maintain_order=True)
    counts = table.agg(pl.col("row").first(), pl.len().alias("rows"))
    positives = table.agg(pl.col(y.columns).sum()).select(y.columns).to_numpy()
    ranks = table.agg((pl.col(y.columns) * pl.col("rank")).sum()).select(y.columns).to_numpy()
    rows = counts["rows"].to_numpy().astype(np.float64)[:, None]
    pairs, won = positives * (rows - positives), ranks - positives * (positives + 1) / 2
    area = np.divide(won, pairs, out=np.zeros_like(won), where=pairs > 0)
    return area, rows * (pairs > 0), counts["row"].to_numpy().astype(np.int64)
