"""The folder of the results of one or many runs, with the page and the Markdown made of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from harmonrank.reports import Run, write_page, write_page_pictures
from harmonrank.support import DataError, OutputError
from harmonrank.support.storage import new_file, read_json, write_json
from harmonrank_lab.made import made_by
from harmonrank_lab.paper_tables import TABLES, PaperTable
from harmonrank_lab.paper_tables.report import _tables as tables_of
from harmonrank_lab.paper_tables.report._charts import reproduction_page, reproduction_sections
from harmonrank_lab.paper_tables.report._tables import SUMMARY, heading, sentence

MARK = "<!-- Written by `harmonrank lab reproduce` from here on; what stands above is kept. -->"
_TITLE = "# The paper, made again"

RESULTS, PAGE, REPORT = "results.json", "reproduction.md", "report.html"
_FORMAT = 1


def reproduction_markdown(tables: Sequence[PaperTable], run: Run) -> str:
    """Return what stands below the mark: a summary, then every table with its verdicts."""
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    overview = tables_of.overview_table(tables).to_markdown()
    parts = [f"Last written {run.made}; {versions}.", SUMMARY, overview]
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
    parts = ["  \n".join(facts)]
    parts.append(tables_of.number_table(table).to_markdown() if table.rows else "")
    parts += [tables_of.matrix_table(name, table).to_markdown() for name in table.matrices]
    ours = " *(not a claim of the paper)*"
    verdicts = (f"- {sentence(v)}" + ours * (v.source == "ours") for v in table.verdicts)
    return [part for part in (*parts, "\n".join(verdicts), *table.notes) if part]


class _Results(msgspec.Struct):
    """What `write_reproduction` writes, as far as it is read again."""

    format: Literal[1]
    tables: list[PaperTable]


def add_results(folder: Path, tables: Sequence[PaperTable]) -> tuple[PaperTable, ...]:
    """Return the tables of a folder after some were made again, in the paper's order.

    A new table takes the place of one with the same name, data and protocol.
    """
    merged = {table.identity: table for table in _stored(folder / RESULTS)}
    merged |= {table.identity: table for table in tables}
    return tuple(sorted(merged.values(), key=lambda table: TABLES.index(table.key)))


def _stored(path: Path) -> list[PaperTable]:
    if not path.is_file():
        return []
    try:
        results = read_json(path, _Results)
    except DataError as error:
        reason = str(error).rstrip(".")
    else:
        strange = [table.key for table in results.tables if table.key not in TABLES]
        if not strange:
            return results.tables
        reason = f"there is no table '{strange[0]}'"
    raise DataError(
        f"'{path}' does not hold results of `harmonrank lab reproduce` ({reason}); choose another "
        "folder or delete the file."
    )


def write_reproduction(
    folder: Path,
    tables: Sequence[PaperTable],
    run: Run,
    *,
    page: bool,
    markdown: Path | None = None,
    figures: Path | None = None,
) -> list[Path]:
    """Write results.json, reproduction.md, a copy of it elsewhere, page and pictures; return them.

    Args:
        folder: Where the first two and report.html go.
        tables: All that the folder is to hold.
        run: Command and versions.
        page: Whether to write the page, which needs Plotly.
        markdown: Another Markdown file, whose head is kept.
        figures: A folder for every chart as PNG, which also needs Chromium.
    """
    parts: dict[str, Any] = {"format": _FORMAT, "made": run.made, "code": made_by()}
    parts |= {"versions": run.versions, "tables": [table.to_dict() for table in tables]}
    with new_file(folder / RESULTS, overwrite=True) as partial:
        write_json(partial, parts)
    written, text = [folder / RESULTS], reproduction_markdown(tables, run)
    for path in filter(None, [folder / PAGE, markdown]):
        whole = with_head(path, text)
        with new_file(path, overwrite=True) as partial:
            partial.write_text(whole, encoding="utf-8")
        written.append(path)
    whole = reproduction_page(tables, run) if page or figures else ""
    if figures is not None:
        write_page_pictures(whole, reproduction_sections(tables), figures)
        written.append(figures)
    if page:
        write_page(whole, folder / REPORT)
        written.append(folder / REPORT)
    return written
