"""Drift: how far each score has moved since the fit, and whether a model was replaced."""

__all__ = ["CONSTANT_SCALE", "SAME_OFFSET", "SAME_SCALE", "ColumnDrift", "Drift"]

from dataclasses import asdict, dataclass
from typing import Any

from harmonrank.support.table import Table, Tabular, table_of

_FEWEST_ROWS = 1000
_MOVED_OFFSET, _MOVED_SCALE = 0.1, 1.07
SAME_OFFSET, SAME_SCALE = 0.05, 1.05
CONSTANT_SCALE = 1e-3
"""Below, nearly all rows have one value."""


@dataclass(frozen=True)
class ColumnDrift:
    """Where one score column is now, relative to the fit, given the context.

    Attributes:
        column: The score's column.
        rows: How many were measured, those that have this score.
        offset: Change of the median, in standard deviations of the fit.
        scale: The range from the 10th to the 90th percentile, over that of the fit; a few broken
            scores change neither.
    """

    column: str
    rows: int
    offset: float
    scale: float

    @property
    def moved(self) -> bool:
        """Whether it is not where it was at the fit, and that is not chance.

        >>> ColumnDrift("p_buy", 5000, offset=0.05, scale=1.05).moved
        False
        >>> ColumnDrift("p_buy", 5000, offset=0.05, scale=0.6).moved
        True
        """
        return self.rows >= _FEWEST_ROWS and self.beyond(_MOVED_OFFSET, _MOVED_SCALE)

    @property
    def unchanged(self) -> bool:
        """Whether it is where it was at the fit, but for chance."""
        return not self.beyond(SAME_OFFSET, SAME_SCALE)

    @property
    def constant(self) -> bool:
        """Whether nearly all rows have one value, as when an upstream model has failed."""
        return self.scale < CONSTANT_SCALE

    @property
    def verdict(self) -> str:
        """One word or two for a table."""
        if self.constant:
            return "one value"
        if self.unchanged:
            return "unchanged"
        return "moved" if self.moved else "hardly moved"

    def beyond(self, offset: float, scale: float) -> bool:
        """Tell whether it moved farther than this, in one way or the other."""
        return abs(self.offset) > offset or not 1 / scale < self.scale < scale

    def __str__(self) -> str:
        return (
            f"'{self.column}' has moved since the fit (median {self.offset:+.2f} standard "
            f"deviations, scale × {self.scale:.2f})"
        )


@dataclass(frozen=True, repr=False)
class Drift(Tabular):
    """A report on a table's scores; printing it gives a table and the evidence.

    Attributes:
        rows: How many rows were measured.
        columns: One entry per score column.
        replaced: Score columns that moved as if their upstream models were replaced.
        evidence: Why these, or why none: one sentence each.
    """

    rows: int
    columns: tuple[ColumnDrift, ...]
    replaced: tuple[str, ...]
    evidence: tuple[str, ...]

    @property
    def moved(self) -> tuple[str, ...]:
        """The score columns that have moved, for whatever reason."""
        return tuple(column.column for column in self.columns if column.moved)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        columns = [
            {**asdict(column), "moved": column.moved, "verdict": self._verdict(column)}
            for column in self.columns
        ]
        parts = {"replaced": list(self.replaced), "evidence": list(self.evidence)}
        return {"rows": self.rows, "columns": columns, **parts}

    def to_table(self) -> Table:
        """Return a row per score column, with the evidence below."""
        rows = [(c.column, c.offset, c.scale, self._verdict(c)) for c in self.columns]
        unit = (
            f"{self.rows:,} rows; the median in standard deviations of the fit, given the context."
        )
        formats = {"median": "+.2f", "scale": ".3f"}
        head = ("score", "median", "scale", "verdict")
        return table_of(head, rows, formats, notes=(unit, *self.evidence))

    def _verdict(self, column: ColumnDrift) -> str:
        return "replaced" if column.column in self.replaced else column.verdict
