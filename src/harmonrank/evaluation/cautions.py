"""Cautions: what a reader should know about the rows before believing a result, a line each."""

__all__ = ["cautions_of", "few_positives", "unseen_shares"]

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from harmonrank.data import Log
from harmonrank.data.context import UNKNOWN, ContextEncoder
from harmonrank.data.log import selected
from harmonrank.fusion.quality.upstream import Upstream

FEW_POSITIVES = 100
"""Below, an AUC is uncertain."""

_LEAK = 0.99
_MUCH_UNSEEN = 0.05
_MUCH_BEYOND = 0.01
_EVERY_VALUE = 1 << 30


def cautions_of(
    test: Log,
    upstream: Mapping[str, Upstream],
    *,
    train: Log | None = None,
    encoder: ContextEncoder | None = None,
) -> tuple[str, ...]:
    """Return a line for each kind of trouble, the gravest first.

    Args:
        test: The rows that count.
        upstream: How well each score ranks alone.
        train: The training rows, where they are at hand.
        encoder: Else the context values that a fitted model knows.
    """
    lines = [_leaks(upstream), _no_requests(test), _constant(test, "test")]
    lines += _since(test, train, encoder)
    return tuple(line for line in [*lines, few_positives(test)] if line)


def _since(test: Log, train: Log | None, encoder: ContextEncoder | None) -> Iterator[str | None]:
    """Yield what is unlike the training rows."""
    if train is None:
        yield None if encoder is None else _all_unknown(test, encoder)
        return
    yield _constant(train, "training")
    yield _unseen(unseen_shares(train, test))
    yield _beyond(train, test)


def _leaks(upstream: Mapping[str, Upstream]) -> str | None:
    return _said(
        "Too good to be true: {}; was the label known when the score was made?",
        [
            f"{score.column} ('{name}', AUC {score.auc.estimate:.4f})"
            for name, score in upstream.items()
            if score.auc.estimate >= _LEAK
        ],
    )


def _no_requests(test: Log) -> str | None:
    if test.request is not None or not test.schema.value:
        return None
    return "Value at K needs requests, so AUC-sum decides; name the request column in the schema."


def _constant(log: Log, rows: str) -> str | None:
    low, high = _ends(log.scores)
    flat = [c for c, a, b in zip(log.schema.score_columns, low, high, strict=True) if a == b]
    verb = "have" if len(flat) > 1 else "has"
    return _said(f"{{}} {verb} one value in all {rows} rows, which ranks nothing.", flat)


def unseen_shares(train: Log, test: Log) -> dict[str, float]:
    """Return the share of test rows whose value of a context column no training row has.

    A rare value is seen, though a method may pool it with others; a missing value is not counted,
    and columns of fractions have no values to be seen.
    """
    columns = [s for s in train.context if not s.dtype.is_float()]
    known = selected(train.context, [s.name for s in columns])
    encoder = ContextEncoder.fit(known, _EVERY_VALUE)
    shares = {}
    for feature in encoder.features:
        series = test.context[feature.name]
        unknown = feature.encode(series.alias("value")) == UNKNOWN
        shares[feature.name] = float((unknown & series.is_not_null().to_numpy()).mean())
    return shares


def _unseen(shares: Mapping[str, float]) -> str | None:
    much = [
        f"{name} in {'all' if share == 1 else f'{share:.0%} of the'} test rows"
        for name, share in shares.items()
        if share >= _MUCH_UNSEEN
    ]
    return _said("Values that training did not see: {}.", much)


def _all_unknown(test: Log, encoder: ContextEncoder) -> str | None:
    codes = test.codes(encoder)
    strange = [
        feature.name
        for feature, column in zip(encoder.features, codes.T, strict=True)
        if feature.slots > 1 and len(column) and (column == UNKNOWN).all()
    ]
    return _said("No row has a value that the fit knew of {}.", strange)


def _beyond(train: Log, test: Log) -> str | None:
    """Say in how many test rows a number is below or above all of training."""
    beyond = []
    for name, before, now in _numbers(train, test):
        known, recent = before[~np.isnan(before)], now[~np.isnan(now)]
        if not len(known) or not len(recent):
            continue
        share = float(((recent < known.min()) | (recent > known.max())).sum() / len(now))
        if share >= _MUCH_BEYOND:
            beyond.append(f"{name} in {share:.0%}")
    return _said("Test rows outside the training range: {}.", beyond)


def _numbers(train: Log, test: Log) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the columns of numbers, in training and in test."""
    for m, name in enumerate(train.schema.score_columns):
        yield name, train.scores[:, m], test.scores[:, m]
    for series in train.context:
        other = test.context[series.name]
        if series.dtype.is_float() and other.dtype.is_numeric():
            yield series.name, series.to_numpy().astype(float), other.to_numpy().astype(float)


def few_positives(test: Log) -> str | None:
    """Name the objectives that have few positives among the test rows."""
    counts = test.known_labels().sum(axis=0, dtype=np.int64)
    few = [
        f"{name} {count:,}"
        for name, count in zip(test.schema.names, counts, strict=True)
        if count < FEW_POSITIVES and name not in test.schema.graded
    ]
    return _said("Few positives among the test rows: {}; see their intervals.", few)


def _ends(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest of each score that is known."""
    known = ~np.isnan(scores)
    low = np.where(known, scores, np.inf).min(axis=0)
    return low, np.where(known, scores, -np.inf).max(axis=0)


def _said(sentence: str, names: Sequence[str], most: int = 6) -> str | None:
    """Return a sentence about some names, if there are any, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return sentence.format(", ".join(names[:most]) + more) if names else None
