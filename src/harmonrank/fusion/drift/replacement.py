"""Replacement: what tells a replaced upstream model from other rows.

Other rows than those of the fit (the best candidates, another season) move correlated scores
together: selected by score i, they move score j by ρ_ij times the move of i. A replaced model moves
its own score alone, and moves it everywhere. So a move is taken for a replaced model if every score
either has moved or is unchanged, each that moved is correlated with one that is unchanged and would
have shown a selection of rows, and it moved in every part of the table. A score that moved a little
is as good as unchanged where a selection of rows would have moved it far more, as time moves all
scores somewhat.
"""

__all__ = ["replacement_of"]

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from harmonrank.fusion.drift.drift import SAME_OFFSET, SAME_SCALE, ColumnDrift

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
    whole = _steps(moves_of(np.arange(columns[0].rows)), moved)
    for kind, places in parts.items():
        along = np.stack([_along(whole, _steps(moves_of(part), moved)) for part in places])
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


def _steps(moves: tuple[np.ndarray, np.ndarray], columns: Sequence[int]) -> np.ndarray:
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
