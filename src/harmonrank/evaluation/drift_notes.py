"""What a verb says about the drift of scores."""

__all__ = ["drift_notes"]

from collections.abc import Sequence

from harmonrank.fusion.drift.drift import ColumnDrift, Drift


def drift_notes(drift: Drift, *, recalibrated: bool) -> list[str]:
    """Return a sentence or two on the scores that matter.

    Without recalibration these are the scores that moved far, or whose models were replaced; with
    it, every score, as each was matched.
    """
    if recalibrated:
        moves = ", ".join(
            f"{c.column} (median {c.offset:+.2f}, scale × {c.scale:.2f})" for c in drift.columns
        )
        first = f"Recalibrated on {drift.rows:,} rows, without labels: {moves}."
        return [first, *map(_constant, filter(_is_constant, drift.columns)), *drift.evidence]
    replaced = [column for column in drift.columns if column.column in drift.replaced]
    far = [column for column in drift.columns if column.far and column not in replaced]
    return [_moved(found, replaced=found is replaced) for found in (replaced, far) if found]


def _is_constant(column: ColumnDrift) -> bool:
    return column.constant


def _constant(column: ColumnDrift) -> str:
    return (
        f"'{column.column}' has one value in nearly all rows; it is ignored until its upstream "
        "model is repaired and MODEL is recalibrated again."
    )


def _moved(columns: Sequence[ColumnDrift], *, replaced: bool) -> str:
    one = len(columns) == 1
    its, model = ("its", "model is") if one else ("their", "models are")
    reason = (
        f" and correlated scores have not, as when {its} upstream {model} replaced: recalibrate "
        "the model (--recalibrate, or `harmonrank recalibrate`)."
        if replaced
        else f"; if {its} upstream {'model was' if one else 'models were'} replaced, run "
        "`harmonrank recalibrate`."
    )
    if one:
        return f"{columns[0]}{reason}"
    moves = ", ".join(f"'{c.column}' ({c.offset:+.2f}, × {c.scale:.2f})" for c in columns)
    return f"{moves} have moved since the fit (median in standard deviations, scale){reason}"
