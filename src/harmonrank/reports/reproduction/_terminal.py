"""Made-again tables for a terminal of 80 columns."""

__all__ = ["reproduction_tables"]

from collections.abc import Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from harmonrank.evaluation.reproduction import Table, Verdict
from harmonrank.reports.reproduction._text import (
    SUMMARY,
    counts,
    estimate,
    heading,
    number,
    sentence,
    upper,
)

_STYLES = {"held": "green", "did not hold": "red", "cannot be told": "yellow"}


def reproduction_tables(tables: Sequence[Table]) -> RenderableType:
    """Return each table with the verdicts on its claims, then how many held."""
    parts = [part for table in tables for part in (*_table(table), Text(""))]
    told = ", ".join(f"{n} {outcome}" for outcome, n in counts(tables).items())
    return Group(*parts, Text(f"Claims of the paper: {told}.", style="bold"), _dim(SUMMARY))


def _table(table: Table) -> list[RenderableType]:
    known = any(row.regret is not None for row in table.rows)
    grid = Grid(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    grid.add_column("", max_width=42)
    for column in ("paper", "ours", *["regret"] * known):
        grid.add_column(column, justify="right", no_wrap=True)
    for group, rows in groupby(table.rows, key=lambda row: row.group):
        grid.add_row(Text(group, style="italic"))
        for row in rows:
            regret = [number(row.regret.mean, row.unit) if row.regret else ""]
            ours = estimate(row.ours, row.unit)
            paper = number(row.paper, row.unit)
            grid.add_row(f"  {row.name}{_unit(row.unit)}", paper, ours, *regret * known)
    failures = dict.fromkeys(f"{row.name}: {row.note}" for row in table.rows if row.note)
    return [
        Text(heading(table), style="bold"),
        _dim(f"{upper(table.settings)}."),
        grid,
        *(Text(failure, style="red") for failure in failures),
        _verdicts(table.verdicts),
        *(_dim(note) for note in table.notes),
    ]


def _unit(unit: str) -> str:
    return f", {unit}" if unit in ("ms", "rows/s", "%") else ""


def _verdicts(verdicts: Sequence[Verdict]) -> RenderableType:
    grid = Grid.grid(padding=(0, 1, 0, 0))
    for verdict in verdicts:
        word, colon, rest = sentence(verdict).partition(":")
        grid.add_row("•", Text.assemble((word, _STYLES[verdict.outcome]), colon, rest))
    return grid


def _dim(text: str) -> Text:
    return Text(text, style="dim")
