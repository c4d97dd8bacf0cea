"""Measuring drift: the scores of a table against the reference of a model.

Other rows than those of the fit (the best candidates, another season) move correlated scores
together: selected by score i, they move score j by ρ_ij times the move of i. A replaced model moves
its own score alone, and moves it everywhere. So a move is taken for a replaced model if every score
either has moved or is unchanged, each that moved is correlated with one that is unchanged and would
have shown a selection of rows, and it moved in every part of the table. A score that moved a little
is as good as unchanged where a selection of rows would have moved it far more, as time moves all
scores somewhat.
"""

__all__ = ["drift_between", "drift_of", "replacement_of"]

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from harmonrank.data import ContextEncoder, Log
from harmonrank.fusion.drift.drift import (
    CONSTANT_SCALE,
    SAME_OFFSET,
    SAME_SCALE,
    ColumnDrift,
    Drift,
)
from harmonrank.fusion.drift.reference import RECENT_ROWS, Reference
from harmonrank.model.density.spread import Spread

# Rows that were selected by one score would move another one, or widen it, at least so far.
_DRAG, _VARIANCE_DRAG = 0.1, 0.2
# It would have moved a score that moved a little at least so many times as far.
_FAR_MORE = 3.0
# A replaced model moves its score everywhere; anywhere, by at least this part of the whole move.
_LEAST_PART = 1 / 3
_TINY_SCALE = 1e-3  # of one value, whose logarithm would be infinite
_FEWEST_ROWS = 20_000

Moves = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Offset and scale of every score on some rows."""
Finding = tuple[tuple[str, ...], tuple[str, ...]]
"""The score columns whose models were replaced, and the evidence in sentences."""

_BLOCKS = 8
_FREQUENT = 0.05
_MOST_VALUES = 100


def replacement_of(
    columns: Sequence[ColumnDrift],
    correlation: np.ndarray,
    parts: Mapping[str, Sequence[np.ndarray]],
    moves_of: Moves,
) -> Finding:
    """Return the score columns that moved as if their upstream models were replaced, and why.

    Args:
        columns: The drift of every score column.
        correlation: (M, M) between the scores at the fit, given the context.
        parts: Rows of each part of the table, by kind of part.
        moves_of: Measures some rows.
    """
    moved = [i for i, column in enumerate(columns) if column.moved]
    if not moved:
        return (), ("No score has moved since the fit.",)
    same = [i for i, column in enumerate(columns) if column.unchanged]
    names = _listed([columns[i].column for i in moved])
    doubt = _doubt_by_others(names, columns, correlation)
    if doubt:
        return (), (doubt,)
    evidence = []
    for i in moved:
        witness = _witness(columns[i], i, same, correlation)
        if witness is None:
            return (), (
                f"{columns[i].column} moved, but no score that is unchanged is correlated with it "
                "enough to rule out a change of the rows.",
            )
        evidence.append(
            f"{columns[i].column} moved and {columns[witness].column} did not, though their "
            f"correlation is {correlation[i, witness]:+.2f}: other rows would have moved both."
        )
    doubt = _doubt_by_parts(columns, moved, parts, moves_of)
    if doubt:
        return (), (doubt,)
    everywhere = " and ".join(f"all {len(places)} {kind}" for kind, places in parts.items())
    evidence.append(f"{names} moved in {everywhere}, as when an upstream model is replaced.")
    return tuple(columns[i].column for i in moved), tuple(evidence)


def _doubt_by_others(
    names: str, columns: Sequence[ColumnDrift], correlation: np.ndarray
) -> str | None:
    """Return why the other scores, or the number of rows, leave it open."""
    rows = columns[0].rows
    if rows < _FEWEST_ROWS:
        return (
            f"{names} moved; {rows:,} rows cannot tell a replaced model from other rows, "
            f"{_FEWEST_ROWS:,} can."
        )
    moved = [i for i, column in enumerate(columns) if column.moved]
    between = [
        column.column
        for j, column in enumerate(columns)
        if not (column.moved or column.unchanged)
        and not all(_far_more(columns[i], column, abs(correlation[i, j])) for i in moved)
    ]
    if between:
        return (
            f"{names} moved, and so did {_listed(between)} a little: this may be a change of the "
            "rows and not of a model."
        )
    return None


def _doubt_by_parts(
    columns: Sequence[ColumnDrift],
    moved: Sequence[int],
    parts: Mapping[str, Sequence[np.ndarray]],
    moves_of: Moves,
) -> str | None:
    """Return where a score did not move, though it moved as a whole."""
    whole = _log_moves(moves_of(np.arange(columns[0].rows)), moved)
    for kind, places in parts.items():
        along = np.stack([_along(whole, _log_moves(moves_of(part), moved)) for part in places])
        for i, count in zip(moved, along.sum(axis=0), strict=True):
            if count < len(places):
                return (
                    f"{columns[i].column} moved in {count} of {len(places)} {kind} only: a "
                    "replaced model would have moved it in all."
                )
    return None


def _far_more(moved: ColumnDrift, other: ColumnDrift, tie: float) -> bool:
    """Tell whether rows selected by the score that moved would have moved another one far more."""
    offset = tie * abs(moved.offset) / _FAR_MORE
    scale = np.sqrt(1 + tie**2 * abs(moved.scale**2 - 1) / _FAR_MORE)
    return not other.beyond(max(offset, SAME_OFFSET), max(float(scale), SAME_SCALE))


def _witness(
    column: ColumnDrift, i: int, same: Sequence[int], correlation: np.ndarray
) -> int | None:
    """Return the unchanged score that a selection of rows by score i would have moved the most."""
    if not same:
        return None
    best = max(same, key=lambda j: abs(correlation[i, j]))
    tie = abs(correlation[i, best])
    drag, widened = tie * abs(column.offset), tie**2 * abs(column.scale**2 - 1)
    return best if drag >= _DRAG or widened >= _VARIANCE_DRAG else None


def _log_moves(moves: tuple[np.ndarray, np.ndarray], columns: Sequence[int]) -> np.ndarray:
    """Return offset and log scale of some columns, (2, columns)."""
    offset, scale = moves
    return np.stack([offset, np.log(np.maximum(scale, _TINY_SCALE))])[:, columns]


def _along(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return whether each column moved in a part as in the whole, and not much less."""
    enough: np.ndarray = (part * whole).sum(axis=0) >= _LEAST_PART * (whole**2).sum(axis=0)
    return enough


def _listed(names: Sequence[str]) -> str:
    """Return 'a', 'a and b', or 'a, b and c'."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


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
