"""Made-again tables as a Markdown page, whose head a person may write."""

__all__ = ["MARK", "reproduction_markdown", "with_head"]

from collections.abc import Sequence
from pathlib import Path

from harmonrank.evaluation.reproduction import Row, Table
from harmonrank.reports.facts import Run
from harmonrank.reports.markdown import markdown_table
from harmonrank.reports.reproduction._text import (
    COUNTS,
    SUMMARY,
    counts,
    estimate,
    heading,
    number,
    sentence,
)

MARK = "<!-- Written by `harmonrank reproduce` from here on; what stands above is kept. -->"
_TITLE = "# The paper, made again"


def reproduction_markdown(tables: Sequence[Table], run: Run) -> str:
    """Return what stands below the mark: a summary, then every table with its verdicts."""
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    parts = [f"Last written {run.made}; {versions}.", SUMMARY, _summary(tables)]
    for table in tables:
        parts += [f"## {heading(table)}", *_section(table)]
    return "\n\n".join(parts) + "\n"


def with_head(path: Path, text: str) -> str:
    """Return the text under the head that a file has already, or under a title."""
    head = _TITLE
    if path.is_file():
        before, mark, _ = path.read_text(encoding="utf-8").partition(MARK)
        head = before.rstrip() if mark else head
    return f"{head}\n\n{MARK}\n\n{text}"


def _summary(tables: Sequence[Table]) -> str:
    rows = [
        [heading(table), *(str(counts([table])[outcome] or "") for outcome in COUNTS)]
        for table in tables
    ]
    rows.append(["**all claims of the paper**", *(str(n) for n in counts(tables).values())])
    return markdown_table(["table", *COUNTS], rows)


def _section(table: Table) -> list[str]:
    facts = [f"Data: {table.data}.", f"Settings: {table.settings}."]
    if table.command:
        facts.append(f"Command: `{table.command}`.")
    parts = ["  \n".join(facts), _numbers(table)]
    parts += [_matrix(name, table) for name in table.matrices]
    parts.append("\n".join(f"- {sentence(v)}" + _whose(v.source) for v in table.verdicts))
    parts += table.notes
    return [part for part in parts if part]


def _whose(source: str) -> str:
    return " *(not a claim of the paper)*" if source == "ours" else ""


def _numbers(table: Table) -> str:
    units = list(dict.fromkeys(row.unit for row in table.rows))
    known = any(row.regret is not None for row in table.rows)
    groups = len({row.group for row in table.rows}) > 1
    head = [*["setting"] * groups, units[0] if len(units) == 1 else "what", "paper", "ours"]
    rows = [_row(row, groups, known, units) for row in table.rows]
    return markdown_table([*head, *["regret"] * known], rows, texts=1 + groups) if rows else ""


def _row(row: Row, groups: bool, known: bool, units: list[str]) -> list[str]:
    name = row.name if len(units) == 1 or row.unit == row.name else f"{row.name} ({row.unit})"
    ours = estimate(row.ours, row.unit) if row.ours else f"failed: {row.note}"
    regret = [estimate(row.regret, row.unit) if row.regret else ""]
    return [*[row.group] * groups, name, number(row.paper, row.unit), ours, *regret * known]


def _matrix(name: str, table: Table) -> str:
    rows = [
        [objective, *(number(value, "correlation") for value in values)]
        for objective, values in zip(table.objectives, table.matrices[name], strict=True)
    ]
    return markdown_table([f"{name}", *table.objectives], rows)
