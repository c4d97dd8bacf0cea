"""Made-again tables as a Markdown page, whose head a person may write."""

__all__ = ["MARK", "reproduction_markdown", "with_head"]

from collections.abc import Sequence
from pathlib import Path

from harmonrank.reports.facts import Run
from harmonrank.support.errors import OutputError
from harmonrank_lab.paper_tables import PaperTable
from harmonrank_lab.paper_tables.report._tables import matrix_table, number_table, overview_table
from harmonrank_lab.paper_tables.report._text import SUMMARY, heading, sentence

MARK = "<!-- Written by `harmonrank lab reproduce` from here on; what stands above is kept. -->"
_TITLE = "# The paper, made again"


def reproduction_markdown(tables: Sequence[PaperTable], run: Run) -> str:
    """Return what stands below the mark: a summary, then every table with its verdicts."""
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    parts = [f"Last written {run.made}; {versions}.", SUMMARY, overview_table(tables).to_markdown()]
    for table in tables:
        parts += [f"## {heading(table)}", *_section(table)]
    return "\n\n".join(parts) + "\n"


def with_head(path: Path, text: str) -> str:
    """Return the text under the head that a file has already, or under a title.

    Raises:
        OutputError: The file was never written by us: it has no mark.
    """
    head = _TITLE
    if path.is_file() and path.stat().st_size:
        before, mark, _ = path.read_text(encoding="utf-8", errors="replace").partition(MARK)
        if not mark:
            raise OutputError(
                f"'{path}' was not written by `harmonrank lab reproduce`, so it is not "
                f"overwritten; choose another name, or add the line {MARK} to it."
            )
        head = before.rstrip()
    return f"{head}\n\n{MARK}\n\n{text}"


def _section(table: PaperTable) -> list[str]:
    facts = [f"Data: {table.data}.", f"Settings: {table.settings}."]
    if table.command:
        facts.append(f"Command: `{table.command}`.")
    parts = ["  \n".join(facts), number_table(table).to_markdown() if table.rows else ""]
    parts += [matrix_table(name, table).to_markdown() for name in table.matrices]
    parts.append("\n".join(f"- {sentence(v)}" + _whose(v.source) for v in table.verdicts))
    parts += table.notes
    return [part for part in parts if part]


def _whose(source: str) -> str:
    return " *(not a claim of the paper)*" if source == "ours" else ""
