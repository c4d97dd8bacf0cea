"""What an off-policy estimate takes from a log: propensities, and predictions of what is wanted."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from harmonrank.data import Log, Schema, Source, open_table, read_log
from harmonrank.data.hashing import hash_shares
from harmonrank.data.values import chances_at
from harmonrank.fusion import method_class
from harmonrank.fusion.position import MOST_WEIGHT, corrected
from harmonrank.support.errors import DataError, UsageError

_MOST_ROWS = 200_000


@dataclass(frozen=True, eq=False)
class LoggedRequests:
    """Rows of the requests that serve, with all that is known of how they were shown.

    Attributes:
        log: With labels, requests, positions and the examination curve.
        rows: (n,) their row numbers in the table.
        looked: θ, (n,), of the place at which a row was shown; 0 if it was not.
        propensity: q, (n,), the chance that a row would be looked at.
        predicted: p̂, (n, M), by a regression that never saw the request of the row.
        clipped: Share of the rows that were shown whose chance was raised.
        randomised: Whether these are requests in random order.
    """

    log: Log
    rows: np.ndarray
    looked: np.ndarray
    propensity: np.ndarray
    predicted: np.ndarray
    clipped: float
    randomised: bool


def read_requests(
    table: Source, schema: Schema, *, randomised: str | None, seed: int
) -> LoggedRequests:
    """Read a log, and work out propensities and predictions.

    Args:
        table: With labels, requests and positions.
        schema: Which column is what.
        randomised: Column that is 1 in requests whose order was random; only these serve.
        seed: Decides the halves of which each predicts the other.
    """
    whole = corrected(_checked(read_log(table, schema)))
    assert whole.request is not None
    assert whole.position is not None
    drawn = None if randomised is None else _randomised(table, randomised, whole)
    curve = whole.schema.examination
    looked = np.where(whole.position >= 0, chances_at(curve, whole.position), 0.0)
    propensity = np.where(looked > 0, np.maximum(looked, 1 / MOST_WEIGHT), 0.0)
    clipped = float((propensity > looked)[looked > 0].mean())
    predicted = _predicted(whole, seed)
    rows = np.arange(whole.rows)
    if drawn is not None:
        # In random order every row is as likely at every place of its request.
        _, code, size = np.unique(whole.request, return_inverse=True, return_counts=True)
        propensity, clipped = (np.bincount(code, looked) / size)[code], 0.0
        rows = np.flatnonzero(drawn)
    known = looked[rows], propensity[rows], predicted[rows]
    return LoggedRequests(whole.take(rows), rows, *known, clipped, drawn is not None)


def _checked(log: Log) -> Log:
    for role in ("position", "request"):
        if getattr(log, role) is None:
            raise UsageError(
                f"An estimate from a log needs a {role} column, and the model's schema names none; "
                f"name it with `{role}`."
            )
    return log


def _randomised(table: Source, column: str, log: Log) -> np.ndarray:
    """Return which rows are of requests in random order."""
    if isinstance(table, Log):
        raise UsageError(
            f"Column '{column}' must be read from a table. Got a log that was read before."
        )
    series = open_table(table, [column])[column]
    kind = series.dtype.is_numeric() or series.dtype == pl.Boolean
    values = series.cast(pl.Float64).to_numpy() if kind else np.full(log.rows, np.nan)
    if not np.isin(values, (0.0, 1.0)).all():
        raise DataError(
            f"Column '{column}', which says whether the order was random, must be 0 or 1. "
            f"Got type {series.dtype} with other values; convert it first."
        )
    drawn: np.ndarray = values > 0
    assert log.request is not None
    _, code = np.unique(log.request, return_inverse=True)
    share = np.bincount(code, drawn) / np.bincount(code)
    if not np.isin(share, (0.0, 1.0)).all():
        raise DataError(
            f"Column '{column}' must be the same in all rows of a request. Got both in "
            f"{int((~np.isin(share, (0.0, 1.0))).sum()):,} requests."
        )
    if not drawn.any():
        raise DataError(f"Column '{column}' is 0 in all rows; no request was in random order.")
    return drawn


def _predicted(log: Log, seed: int) -> np.ndarray:
    """Return p̂ of each row, from a regression on the other half of the requests."""
    assert log.request is not None
    labels = log.known_labels()
    half = hash_shares(log.request, f"offline-{seed}") < 0.5
    predicted = np.empty(labels.shape)
    for mine in (half, ~half):
        if not mine.any():
            continue
        learned = np.flatnonzero(~mine) if not mine.all() else np.arange(log.rows)
        predicted[mine] = _regression(log.take(learned), log.take(np.flatnonzero(mine)))
    return predicted


def _regression(train: Log, rows: Log) -> np.ndarray:
    method = method_class("logistic")()
    assert method.traits.probabilities
    bare = replace(rows, labels=None, truth=None)
    try:
        return method.fit(train.sampled(_MOST_ROWS), train.schema).probabilities(bare)
    except (DataError, UsageError):
        # Too little feedback to learn from: its mean rate will do, as any prediction does.
        weight = train.sample_weight
        known = weight is None or bool(weight.any())
        rate = train.prevalence() if known else train.known_labels().mean(axis=0)
        return np.broadcast_to(rate, (rows.rows, len(rate)))
