"""A table as HTML."""

__all__ = ["cut", "html"]

from html import escape
from typing import Any

from harmonrank.support.table._table import Style, Table, mark_of, value_of

_FEW_COLUMNS = 4
_LONG = 28
_END = 8
_SENTENCE = 60  # A longer text is set in several lines.


def html(table: Table, *, sortable: bool) -> str:
    """Return a table element with its notes; a page's style gives its classes a look.

    A number carries its value, by which a script can sort.
    """
    sides = table.aligned()
    heads = zip(table.columns, sides, strict=True)
    head = "".join(_head(column.title, side, sortable) for column, side in heads)
    body = "".join(
        _row(row, texts, sides, table.emphasis.get(index, ""))
        for index, (row, texts) in enumerate(zip(table.rows, table.texts(), strict=True))
    )
    title = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    lines = [f"<b>{escape(line)}</b>" for line in table.alarms] + list(map(escape, table.notes))
    notes = f"<p class=about>{'<br>'.join(lines)}</p>" if lines else ""
    small = " small" * (len(table.columns) <= _FEW_COLUMNS)
    kind = " class=sortable" * sortable
    return (
        f'<div class="scroll{small}"><table{kind}>{title}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{notes}"
    )


def _head(title: str, side: str, sortable: bool) -> str:
    shown = escape(cut(title))
    text = f"<button type=button>{shown}</button>" if sortable else shown
    return f"<th scope=col{' class=number' * (side == 'right')}{_whole(title)}>{text}</th>"


def cut(name: str) -> str:
    """Return a long name without its middle, since names often differ at their ends alone.

    A text of several words is no name, and stays whole.

    >>> cut("is_effective_view_of_at_least_thirty_seconds_3")
    'is_effective_view_o…econds_3'
    """
    if len(name) <= _LONG or any(sign.isspace() for sign in name):
        return name
    return f"{name[: _LONG - _END - 1]}…{name[-_END:]}"


def _whole(text: str) -> str:
    return f' title="{escape(text)}"' if cut(text) != text else ""


def _row(row: tuple[Any, ...], texts: list[str], sides: list[Any], style: Style) -> str:
    cells = "".join(map(_cell, row, texts, sides))
    return f"<tr class={style}>{cells}</tr>" if style else f"<tr>{cells}</tr>"


def _cell(cell: Any, text: str, side: str) -> str:
    value, mark = value_of(cell), escape(mark_of(cell))
    kind = " class=number" * (side == "right")
    kind += " class=words" * (len(text) > _SENTENCE and " " in text)
    if isinstance(value, int | float):
        kind += f' data-value="{value!r}"'
    kind += _whole(text)
    return f"<td{kind}>{escape(cut(text))}{f'<i>&nbsp;{mark}</i>' if mark else ''}</td>"
