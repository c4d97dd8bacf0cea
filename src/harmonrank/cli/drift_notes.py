"""What a verb says about the drift of scores."""

__all__ = ["drift_notes", "say"]

from collections.abc import Iterable

import click

from harmonrank.methods.drift import ColumnDrift, Drift


def drift_notes(drift: Drift, *, recalibrated: bool) -> list[str]:
    """Return a sentence for each score that matters.

    Without recalibration these are the scores that moved far, or whose models were replaced; with
    it, every score, as each was matched.
    """
    if recalibrated:
        moves = ", ".join(
            f"{c.column} (median {c.offset:+.2f}, scale × {c.scale:.2f})" for c in drift.columns
        )
        first = f"Recalibrated on {drift.rows:,} rows, without labels: {moves}."
        return [first, *map(_constant, filter(_is_constant, drift.columns)), *drift.evidence]
    return [
        _moved(column, replaced=column.column in drift.replaced)
        for column in drift.columns
        if column.far or column.column in drift.replaced
    ]


def say(notes: Iterable[str]) -> None:
    """Print notes where they do not mix with results."""
    for note in notes:
        click.echo(f"Note: {note}", err=True)


def _is_constant(column: ColumnDrift) -> bool:
    return column.constant


def _constant(column: ColumnDrift) -> str:
    return (
        f"'{column.column}' has one value in nearly all rows; it is ignored until its upstream "
        "model is repaired and MODEL is recalibrated again."
    )


def _moved(column: ColumnDrift, *, replaced: bool) -> str:
    reason = (
        " and correlated scores have not, as when its upstream model is replaced: recalibrate the "
        "model (--recalibrate, or `harmonrank recalibrate`)."
        if replaced
        else "; if its upstream model was replaced, run `harmonrank recalibrate`."
    )
    return f"{column}{reason}"
