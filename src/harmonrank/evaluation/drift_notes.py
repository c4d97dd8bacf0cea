"""What a verb says about the drift of scores."""

__all__ = ["drift_notes"]

from collections.abc import Mapping, Sequence

from harmonrank.fusion.drift.drift import ColumnDrift, Drift
from harmonrank.fusion.drift.shares import shares_by_pattern

_NONE = (
    "no score, as none is proven to come of another upstream model (name those that you know: "
    "`harmonrank recalibrate --scores-changed`)"
)
_MOSTLY = 0.5  # Of the way to a recalibration; whoever would go less is not invited to it.


def drift_notes(
    drift: Drift, *, recalibrated: bool, shares: Mapping[str, float] | None = None
) -> list[str]:
    """Return a sentence or two on the scores whose upstream models were surely replaced.

    Args:
        drift: Of the rows.
        recalibrated: Whether the model was recalibrated on them, or should be.
        shares: How far each score is, or should be, if labels tell more than the report does.
    """
    if shares is None:
        names = [column.column for column in drift.columns]
        shares = dict(zip(names, shares_by_pattern(drift), strict=True))
    changed = [column for column in drift.columns if shares.get(column.column)]
    if not recalibrated:
        likely = [column for column in changed if shares[column.column] >= _MOSTLY]
        replaced = [column for column in likely if column.column in drift.replaced]
        return [_moved(replaced)] if replaced else []
    moves = ", ".join(_correction(column, shares[column.column]) for column in changed)
    first = f"Recalibrated on {drift.rows:,} rows: {moves or _NONE}."
    constant = [_constant(column) for column in drift.columns if column.constant]
    return [first, *constant, *drift.evidence]


def _correction(column: ColumnDrift, share: float) -> str:
    part = "" if share == 1 else f", {share:.0%} of the way"
    return f"{column.column} (median {column.offset:+.2f}, scale × {column.scale:.2f}{part})"


def _constant(column: ColumnDrift) -> str:
    return (
        f"'{column.column}' has one value in nearly all rows; it is ignored until its upstream "
        "model is repaired and MODEL is recalibrated again."
    )


def _moved(columns: Sequence[ColumnDrift]) -> str:
    one = len(columns) == 1
    its, model = ("its", "model is") if one else ("their", "models are")
    reason = (
        f" and correlated scores have not, as when {its} upstream {model} replaced: recalibrate "
        "the model (--recalibrate, or `harmonrank recalibrate`)."
    )
    if one:
        return f"{columns[0]}{reason}"
    moves = ", ".join(f"'{c.column}' ({c.offset:+.2f}, × {c.scale:.2f})" for c in columns)
    return f"{moves} have moved since the fit (median in standard deviations, scale){reason}"
