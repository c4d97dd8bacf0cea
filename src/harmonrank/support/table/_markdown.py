"""A table as Markdown."""

__all__ = ["markdown"]

from collections.abc import Iterable

from harmonrank.support.table._table import Table, mark_of

_RULES = {"left": "---|", "right": "--:|"}
_AROUND = {"bold": "**", "red": "**"}


def markdown(table: Table) -> str:
    """Return title, table and notes as paragraphs; a bold row has its texts in bold.

    A line break within a cell becomes a space, and a bar is escaped.
    """
    lines = [_line(column.title for column in table.columns)]
    lines.append(f"|{''.join(_RULES[side] for side in table.aligned())}")
    for index, (row, texts) in enumerate(zip(table.rows, table.texts(), strict=True)):
        around = _AROUND.get(table.emphasis.get(index, ""), "")
        marked = (f"{text} {mark_of(cell)}".rstrip() for cell, text in zip(row, texts, strict=True))
        lines.append(_line(f"{around}{text}{around}" if text else "" for text in marked))
    notes = [*(f"**{_safe(line)}**" for line in table.alarms), *map(_safe, table.notes)]
    return "\n\n".join(filter(None, [_safe(table.title), "\n".join(lines), "  \n".join(notes)]))


def _line(texts: Iterable[str]) -> str:
    return f"| {' | '.join(map(_safe, texts))} |"


def _safe(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
