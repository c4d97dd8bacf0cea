"""Tables of a made-again table: its numbers, its matrices, the verdicts, in words and numbers."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from harmonrank.support import Cell, Column, Style, Table
from harmonrank_lab.paper_tables import Estimate, Outcome, PaperTable, Row, Verdict
from harmonrank_lab.paper_tables._table import FIGURES

COUNTS: tuple[Outcome, ...] = ("held", "did not hold", "cannot be told")
SUMMARY: str = FIGURES["summary"]
_FORMATS = {"%": ".2f", "ms": ".2f", "rows/s": ",.0f", "parameters": ",.0f", "correlation": ".3f"}
_SUFFIX = {"%": " %", "ms": " ms"}

_STYLES = {"held": "green", "did not hold": "red", "cannot be told": "yellow"}


def number(value: float | None, unit: str, sign: str = "") -> str:
    """Return a number with the digits that its unit deserves.

    >>> number(3.75221, "AUC-sum"), number(273e6, "FLOPs"), number(None, "ms")
    ('3.7522', '273.0M', '–')
    """
    if value is None:
        return "–"
    if unit == "FLOPs":
        return f"{value / 1e6:{sign}.1f}M"
    return f"{value:{sign}{_FORMATS.get(unit, '.4f')}}".replace("-", "−")


def estimate(ours: Estimate | None, unit: str, sign: str = "") -> str:
    """Return a mean with half its interval; with one seed, the mean alone.

    >>> estimate(Estimate(3.75, 3.74, 3.76, 3), "AUC-sum")
    '3.7500 ± 0.0100'
    """
    if ours is None:
        return "failed"
    mean = number(ours.mean, unit, sign)
    return mean if not ours.reach else f"{mean} ± {number(ours.reach, unit)}"


def sentence(verdict: Verdict) -> str:
    """Return a claim with its verdict and numbers.

    >>> ours = Estimate(0.05, 0.04, 0.06, 3)
    >>> sentence(Verdict("A beats B", "paper", "held", "AUC-sum", 0.084, ours))
    'Held: A beats B (paper +0.0840, here +0.0500 ± 0.0100).'
    """
    suffix = _SUFFIX.get(verdict.unit, "")
    parts = []
    if verdict.paper is not None:
        parts.append(f"paper {number(verdict.paper, verdict.unit, '+')}{suffix}")
    if verdict.ours is not None:
        parts.append(f"here {estimate(verdict.ours, verdict.unit, '+')}{suffix}")
    numbers = f" ({', '.join(parts)})" if parts else ""
    return f"{upper(verdict.outcome)}: {verdict.claim}{numbers}."


def heading(table: PaperTable) -> str:
    """Return a table's title with the short name of its data and of the protocol."""
    data = table.data.partition(",")[0].partition(" in place")[0].removeprefix("simulated ")
    return f"{table.title} · {data}, {table.settings.partition(':')[0]}"


def upper(text: str) -> str:
    """Return a text that begins a sentence; the rest of it stays as it is."""
    return text[:1].upper() + text[1:]


def counts(tables: Sequence[PaperTable]) -> dict[Outcome, int]:
    """Return how many claims had each outcome."""
    outcomes = Counter(v.outcome for table in tables for v in table.verdicts if v.source == "paper")
    return {outcome: outcomes.get(outcome, 0) for outcome in COUNTS}


def number_table(table: PaperTable) -> Table:
    """Return the paper's figure, ours and the distance to the best possible."""
    units = list(dict.fromkeys(row.unit for row in table.rows))
    known = any(row.regret is not None for row in table.rows)
    groups = len({row.group for row in table.rows}) > 1
    columns = (
        *[Column("setting", heading=True)] * groups,
        Column(units[0] if len(units) == 1 else "what", widest=38),
        *(Column(name, align="right") for name in ("paper", "ours", *["regret"] * known)),
    )
    failures = dict.fromkeys(f"{row.name}: {row.note}" for row in table.rows if row.note)
    rows = tuple(_row(row, groups, known, units) for row in table.rows)
    return Table(columns, rows, alarms=tuple(failures))


def _row(row: Row, groups: bool, known: bool, units: list[str]) -> tuple[Any, ...]:
    name = row.name if len(units) == 1 or row.unit == row.name else f"{row.name} ({row.unit})"
    regret = _cell(row.regret, row.unit) if row.regret else ""
    paper = Cell(row.paper, number(row.paper, row.unit))
    return (*[row.group] * groups, name, paper, _cell(row.ours, row.unit), *[regret] * known)


def _cell(ours: Estimate | None, unit: str, sign: str = "") -> Cell:
    return Cell(None if ours is None else ours.mean, estimate(ours, unit, sign))


def matrix_table(name: str, table: PaperTable) -> Table:
    """Return a matrix by objective."""
    columns = (Column(name), *(Column(objective, align="right") for objective in table.objectives))
    rows = tuple(
        (objective, *(Cell(value, number(value, "correlation")) for value in values))
        for objective, values in zip(table.objectives, table.matrices[name], strict=True)
    )
    return Table(columns, rows)


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """Return what became of each claim."""
    columns = tuple(map(Column, ("verdict", "claim", "unit", "paper", "here", "whose")))
    rows = []
    for v in verdicts:
        paper = Cell(v.paper, number(v.paper, v.unit, "+"))
        here = _cell(v.ours, v.unit, "+") if v.ours else None
        rows.append((v.outcome, v.claim, v.unit, paper, here, v.source))
    return Table(columns, tuple(rows))


def overview_table(tables: Sequence[PaperTable]) -> Table:
    """Return how many claims of each table had each outcome, and of all."""
    rows = [(heading(table), *(n or "" for n in counts([table]).values())) for table in tables]
    rows.append(("all claims of the paper", *counts(tables).values()))
    last: dict[int, Style] = {len(rows) - 1: "bold"}
    columns = (Column("table"), *(Column(outcome, align="right") for outcome in COUNTS))
    return Table(columns, tuple(rows), emphasis=last)


def reproduction_tables(tables: Sequence[PaperTable]) -> RenderableType:
    """Return each table with the verdicts on its claims, then how many held."""
    parts = [part for table in tables for part in (*_table(table), Text(""))]
    told = ", ".join(f"{n} {outcome}" for outcome, n in counts(tables).items())
    return Group(*parts, Text(f"Claims of the paper: {told}.", style="bold"), _dim(SUMMARY))


def _table(table: PaperTable) -> list[RenderableType]:
    head = [Text(heading(table), style="bold"), _dim(f"{upper(table.settings)}.")]
    numbers = [number_table(table)] if table.rows else []
    return [*head, *numbers, _verdicts(table.verdicts), *map(_dim, table.notes)]


def _verdicts(verdicts: Sequence[Verdict]) -> RenderableType:
    grid = Grid.grid(padding=(0, 1, 0, 0))
    for verdict in verdicts:
        word, colon, rest = sentence(verdict).partition(":")
        grid.add_row("•", Text.assemble((word, _STYLES[verdict.outcome]), colon, rest))
    return grid


def _dim(text: str) -> Text:
    return Text(text, style="dim")
