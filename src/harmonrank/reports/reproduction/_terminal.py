"""Made-again tables for a terminal."""

__all__ = ["reproduction_tables"]

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from harmonrank.evaluation.reproduction import PaperTable, Verdict
from harmonrank.reports.reproduction._tables import number_table
from harmonrank.reports.reproduction._text import SUMMARY, counts, heading, sentence, upper

_STYLES = {"held": "green", "did not hold": "red", "cannot be told": "yellow"}


def reproduction_tables(tables: Sequence[PaperTable]) -> RenderableType:
    """Return each table with the verdicts on its claims, then how many held."""
    parts = [part for table in tables for part in (*_table(table), Text(""))]
    told = ", ".join(f"{n} {outcome}" for outcome, n in counts(tables).items())
    return Group(*parts, Text(f"Claims of the paper: {told}.", style="bold"), _dim(SUMMARY))


def _table(table: PaperTable) -> list[RenderableType]:
    return [
        Text(heading(table), style="bold"),
        _dim(f"{upper(table.settings)}."),
        *([number_table(table)] if table.rows else []),
        _verdicts(table.verdicts),
        *(_dim(note) for note in table.notes),
    ]


def _verdicts(verdicts: Sequence[Verdict]) -> RenderableType:
    grid = Grid.grid(padding=(0, 1, 0, 0))
    for verdict in verdicts:
        word, colon, rest = sentence(verdict).partition(":")
        grid.add_row("•", Text.assemble((word, _STYLES[verdict.outcome]), colon, rest))
    return grid


def _dim(text: str) -> Text:
    return Text(text, style="dim")
