"""Measuring drift: the scores of a table against the reference of a model.

Other rows than those of the fit (the best candidates, another season) move correlated scores
together: selected by score i, they move score j by ρ_ij times the move of i. A replaced model moves
its own score alone, and moves it everywhere. So a move is taken for a replaced model if every score
either has moved or is unchanged, each that moved is correlated with one that is unchanged and would
have shown a selection of rows, and it moved in every part of the table. A score that moved a little
is as good as unchanged where a selection of rows would have moved it far more, as time moves all
scores somewhat. A model that only became noisier shows by its correlations, which fall where a
selection would have raised them.
"""

__all__ = ["drift_between", "drift_of", "replacement_of"]

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

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
# It would have changed their correlation by so much more than it has.
_TIE_GAP = 0.05
# It would have moved a score that moved a little at least so many times as far.
_FAR_MORE = 3.0
# A replaced model moves its score everywhere; anywhere, by at least this part of the whole move.
_LEAST_PART = 1 / 3
# It does so at once; chances go on moving, from half to half of the rows by such a part of it.
_MOST_TREND, _SEEN_TREND = 0.25, 0.075
_TINY_SCALE = 1e-3  # of one value, whose logarithm would be infinite
_FEWEST_ROWS = 20_000


_IN_TURN = "consecutive blocks of rows"
_BLOCKS = 8
_FREQUENT = 0.05
_MOST_VALUES = 100


class Moves(NamedTuple):
    """How far every score moved on some rows, (M,) each."""

    offset: np.ndarray
    scale: np.ndarray


class Finding(NamedTuple):
    """The score columns whose models were replaced, and the evidence in sentences."""

    replaced: tuple[str, ...]
    evidence: tuple[str, ...]


class Ties(NamedTuple):
    """Correlations between the scores, (M, M) each."""

    fit: np.ndarray
    now: np.ndarray


Measure = Callable[[np.ndarray], Moves]
"""Returns the moves on some rows."""


def replacement_of(
    columns: Sequence[ColumnDrift],
    correlation: np.ndarray,
    parts: Mapping[str, Sequence[np.ndarray]],
    moves_of: Measure,
    now: np.ndarray | None = None,
) -> Finding:
    """Return the score columns that moved as if their upstream models were replaced, and why.

    Args:
        columns: The drift of every score column.
        correlation: (M, M) between the scores at the fit, given the context.
        parts: Rows of each part of the table, by kind of part.
        moves_of: Measures some rows.
        now: Correlations of these rows; those of the fit if left out.
    """
    if not any(column.moved for column in columns):
        return Finding((), ("No score has moved since the fit.",))
    ties = Ties(correlation, correlation if now is None else now)
    same = [i for i, column in enumerate(columns) if column.unchanged]
    moved = [i for i, c in enumerate(columns) if c.moved or _is_noisier(c, i, same, ties)]
    names = _listed([columns[i].column for i in moved])
    doubt = _doubt_by_others(names, columns, moved, correlation)
    if doubt:
        return Finding((), (doubt,))
    evidence = []
    for i in moved:
        reason = _witness(columns, i, same, ties)
        if reason is None:
            doubt = (
                f"{columns[i].column} moved, but no score that is unchanged is correlated with it "
                "enough to rule out a change of the rows."
            )
            return Finding((), (doubt,))
        evidence.append(reason)
    doubt = _doubt_by_parts(columns, moved, parts, moves_of)
    if doubt:
        return Finding((), (doubt,))
    everywhere = " and ".join(f"all {len(pieces)} {kind}" for kind, pieces in parts.items())
    evidence.append(f"{names} moved in {everywhere}, as when an upstream model is replaced.")
    return Finding(tuple(columns[i].column for i in moved), tuple(evidence))


def _doubt_by_others(
    names: str, columns: Sequence[ColumnDrift], moved: Sequence[int], correlation: np.ndarray
) -> str | None:
    """Return why the other scores, or the number of rows, leave it open."""
    rows = columns[0].rows
    if rows < _FEWEST_ROWS:
        return (
            f"{names} moved; {rows:,} rows cannot tell a replaced model from other rows, "
            f"{_FEWEST_ROWS:,} can."
        )
    between = [
        column.column
        for j, column in enumerate(columns)
        if not (j in moved or column.unchanged)
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
    moves_of: Measure,
) -> str | None:
    """Return where a score did not move, or goes on moving, though it moved as a whole."""
    whole = _log_moves(moves_of(np.arange(columns[0].rows)), moved)
    far = np.linalg.norm(whole, axis=0)
    for kind, pieces in parts.items():
        along = np.stack([_along(whole, _log_moves(moves_of(piece), moved)) for piece in pieces])
        for i, count in zip(moved, (along >= _LEAST_PART).sum(axis=0), strict=True):
            if count < len(pieces):
                return (
                    f"{columns[i].column} moved in {count} of {len(pieces)} {kind} only: a "
                    "replaced model would have moved it in all."
                )
        if kind == _IN_TURN and (going := _going_on(along, far)) is not None:
            return (
                f"{columns[moved[going]].column} goes on moving from the first of these rows to "
                "the last, as chances do: a replaced model would have moved it once."
            )
    return None


def _going_on(along: np.ndarray, far: np.ndarray) -> int | None:
    """Return which column moved farther in the later parts than in the earlier ones."""
    early, late = (half.mean(axis=0) for half in np.array_split(along, 2))
    trend = far * (late - early) > np.maximum(_MOST_TREND * far, _SEEN_TREND)
    return int(np.argmax(trend)) if trend.any() else None


def _far_more(moved: ColumnDrift, other: ColumnDrift, tie: float) -> bool:
    """Tell whether rows selected by the score that moved would have moved another one far more."""
    offset = tie * abs(moved.offset) / _FAR_MORE
    scale = np.sqrt(1 + tie**2 * abs(moved.scale**2 - 1) / _FAR_MORE)
    return not other.beyond(max(offset, SAME_OFFSET), max(float(scale), SAME_SCALE))


def _witness(columns: Sequence[ColumnDrift], i: int, same: Sequence[int], ties: Ties) -> str | None:
    """Return what an unchanged score says against a selection of rows by score i, if it can."""
    if not same:
        return None
    column, (before, now) = columns[i], ties
    best = max(same, key=lambda j: abs(before[i, j]))
    name, tie = columns[best].column, abs(before[i, best])
    drag, widened = tie * abs(column.offset), tie**2 * abs(column.scale**2 - 1)
    if drag >= _DRAG or widened >= _VARIANCE_DRAG:
        return (
            f"{column.column} moved and {name} did not, though their correlation is "
            f"{before[i, best]:+.2f}: other rows would have moved both."
        )
    if _is_noisier(column, i, [best], ties):
        return (
            f"{column.column} is wider, and its correlation with {name} is {now[i, best]:+.2f} "
            f"after {before[i, best]:+.2f}: other rows would have raised it."
        )
    return None


def _is_noisier(column: ColumnDrift, i: int, same: Sequence[int], ties: Ties) -> bool:
    """Tell whether score i is wider, and ties to an unchanged one are as loose as noise makes them.

    Rows selected by score i, wider by a factor s, would have raised a correlation ρ to
    ρs/√(1 + ρ²(s² − 1)); noise lowers it to ρ/s.
    """
    if not same or column.scale < SAME_SCALE:
        return False
    j = max(same, key=lambda j: abs(ties.fit[i, j]))
    tie, s = abs(ties.fit[i, j]), column.scale
    selected = tie * s / np.sqrt(1 + tie**2 * (s**2 - 1))
    return bool(selected - abs(ties.now[i, j]) >= _TIE_GAP and abs(ties.now[i, j]) < tie)


def _log_moves(moves: Moves, columns: Sequence[int]) -> np.ndarray:
    """Return offset and log scale of some columns, (2, columns)."""
    return np.stack([moves.offset, np.log(np.maximum(moves.scale, _TINY_SCALE))])[:, columns]


def _along(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return how far each column moved in a part, as a multiple of its move in the whole."""
    multiple: np.ndarray = (part * whole).sum(axis=0) / np.maximum((whole**2).sum(axis=0), 1e-300)
    return multiple


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

    def moves_of(rows: np.ndarray) -> Moves:
        weight = None if log.own_weight is None else log.own_weight[rows]
        return _moves(reference, away[rows], constant, weight)

    parts = {_IN_TURN: np.array_split(np.arange(log.rows), _BLOCKS)}
    if frequent := list(_frequent(codes)):
        parts["frequent context values"] = frequent
    now = None
    if any(column.moved for column in columns):
        now = Reference.of(log.scores, codes, encoder.slots, log.own_weight).correlation
    replaced, evidence = replacement_of(columns, reference.correlation, parts, moves_of, now)
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
) -> Moves:
    """Return the move of each score; one that never had a spread has not moved.

    Nor has one that all of these rows miss.
    """
    now = Spread.of(away, weight)
    known = (reference.width > 0) & np.isfinite(now.middle)
    was_constant = reference.constant > 0
    # One value has no scale, though its deviations from the contexts' medians have one.
    scale = np.where(constant, 0.0, now.width / np.where(was_constant, CONSTANT_SCALE, 1.0))
    same = constant & was_constant & (np.abs(now.middle) < SAME_OFFSET)
    offset = np.where(known & ~same, now.middle, 0.0)
    return Moves(offset, np.where(known & ~same, scale, 1.0))


def _frequent(codes: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the rows of each context value that many rows have."""
    for feature in codes.T:
        for code in np.flatnonzero(np.bincount(feature) >= _FREQUENT * len(codes)):
            yield np.flatnonzero(feature == code)
