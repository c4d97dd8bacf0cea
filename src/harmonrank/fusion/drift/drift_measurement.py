"""Measuring drift: the scores of a table against the reference of a model."""

__all__ = ["drift_between", "drift_of"]

from collections.abc import Iterator

import numpy as np

from harmonrank.data import ContextEncoder, Log
from harmonrank.fusion.drift.drift import CONSTANT_SCALE, SAME_OFFSET, ColumnDrift, Drift
from harmonrank.fusion.drift.reference import RECENT_ROWS, Reference
from harmonrank.fusion.drift.replacement import replacement_of
from harmonrank.model.density.spread import Spread

_BLOCKS = 8
_FREQUENT = 0.05
_MOST_VALUES = 100


def drift_of(reference: Reference, encoder: ContextEncoder, log: Log) -> Drift:
    """Compare the scores of rows with the reference of the fit.

    Args:
        reference: Of the fit, or of the last recalibration.
        encoder: Of the context.
        log: Rows; those of sample weight 0 do not count, and of very many some are drawn. A score
            that is missing does not count either.
    """
    log = log.counted().sampled(RECENT_ROWS)
    codes = log.codes(encoder)
    away = reference.deviations(log.scores, codes)
    constant = Spread.of(log.scores, log.own_weight).width == 0
    offset, scale = _moves(reference, away, constant, log.own_weight)
    columns = tuple(
        ColumnDrift(name, log.rows - int(lost), float(offset[m]), float(scale[m]))
        for m, (name, lost) in enumerate(zip(log.schema.score_columns, log.missing(), strict=True))
    )

    def moves_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weight = None if log.own_weight is None else log.own_weight[rows]
        return _moves(reference, away[rows], constant, weight)

    parts = {"consecutive blocks of rows": np.array_split(np.arange(log.rows), _BLOCKS)}
    if frequent := list(_frequent(codes)):
        parts["frequent context values"] = frequent
    replaced, evidence = replacement_of(columns, reference.correlation, parts, moves_of)
    return Drift(log.rows, columns, replaced, evidence)


def drift_between(before: Log, log: Log) -> Drift:
    """Compare the scores of rows with those of earlier rows."""
    some = before.sampled(RECENT_ROWS)
    encoder = ContextEncoder.fit(some.context, _MOST_VALUES)
    codes = some.codes(encoder)
    reference = Reference.of(some.scores, codes, encoder.slots, some.own_weight)
    return drift_of(reference, encoder, log)


def _moves(
    reference: Reference, away: np.ndarray, constant: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return offset and scale of each score; one that never had a spread has not moved.

    Nor has one that all of these rows miss.
    """
    now = Spread.of(away, weight)
    known = (reference.width > 0) & np.isfinite(now.middle)
    was_constant = reference.constant > 0
    # One value has no scale, though its deviations from the contexts' medians have one.
    scale = np.where(constant, 0.0, now.width / np.where(was_constant, CONSTANT_SCALE, 1.0))
    same = constant & was_constant & (np.abs(now.middle) < SAME_OFFSET)
    offset = np.where(known & ~same, now.middle, 0.0)
    return offset, np.where(known & ~same, scale, 1.0)


def _frequent(codes: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the rows of each context value that many rows have."""
    for feature in codes.T:
        for code in np.flatnonzero(np.bincount(feature) >= _FREQUENT * len(codes)):
            yield np.flatnonzero(feature == code)
