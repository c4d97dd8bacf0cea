"""One table for people, written for a terminal, as Markdown and as HTML."""

__all__ = ["Cell", "Column", "Style", "Table", "Tabular", "cut", "table_of"]

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

Style = Literal["", "bold", "dim", "red", "green"]

_RULES = {"left": "---|", "right": "--:|"}
_AROUND = {"bold": "**", "red": "**"}
_FEW_COLUMNS = 4
_LONG = 28
_END = 8
_SENTENCE = 60  # A longer text is set in several lines.


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        format: Format of numbers; by default whole numbers have commas and others four digits.
        align: By default numbers are aligned right and texts left.
        short: A shorter title for a narrow terminal.
        widest: In a terminal, longer texts are wrapped.
        spare: Left out if a terminal is too narrow.
        heading: In a terminal, its text is a line of its own above the rows that share it.
    """

    title: str
    format: str = ""
    align: Literal["left", "right"] | None = None
    short: str = ""
    widest: int | None = None
    spare: bool = False
    heading: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell with more than a value.

    Attributes:
        value: The number, by which a page sorts; None if it is unknown.
        text: Its text, in place of the column's format.
        mark: A sign after it; the digits above and below stay aligned.
    """

    value: float | str | None
    text: str | None = None
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of texts, numbers and `Cell`s under named columns; an unknown number is a dash.

    Attributes:
        title: A line above the table.
        emphasis: The style of a row, by its index.
        alarms: Warnings, a line each.
        notes: Explanations of the columns, a line each.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    title: str = ""
    emphasis: Mapping[int, Style] = field(default_factory=dict)
    alarms: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), "a row has other columns"

    def texts(self) -> Iterator[list[str]]:
        """Yield the cells of each row as a person reads them, without their marks."""
        for row in self.rows:
            yield [_text(value, col.format) for value, col in zip(row, self.columns, strict=True)]

    def aligned(self) -> list[Literal["left", "right"]]:
        """Return how the texts of each column are aligned."""
        return [
            column.align or ("right" if any(_is_number(row[i]) for row in self.rows) else "left")
            for i, column in enumerate(self.columns)
        ]

    def to_text(self, width: int = 80) -> str:
        """Return the table as plain lines that fit the width."""
        from harmonrank.support.terminal import plain

        return plain(self, width)

    def to_markdown(self) -> str:
        """Return a Markdown table with its notes, for a pull request."""
        return _markdown(self)

    def to_html(self, *, sortable: bool = False) -> str:
        """Return an HTML table; the page's script sorts a sortable one by its heads."""
        return _html(self, sortable=sortable)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from harmonrank.support.terminal import parts

        yield from parts(self, options.max_width)


def table_of(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    formats: Mapping[str, str] | None = None,
    **rest: Any,
) -> Table:
    """Return a table whose columns have a name and, by name, a number format.

    >>> print(table_of(["method", "AUC"], [("a", 0.75), ("b", None)], {"AUC": ".3f"}))
    method   AUC
    a      0.750
    b          –
    """
    formats = formats or {}
    columns = tuple(Column(name, formats.get(name, "")) for name in names)
    return Table(columns, tuple(tuple(row) for row in rows), **rest)


def value_of(cell: Any) -> Any:
    """Return the value of a cell."""
    return cell.value if isinstance(cell, Cell) else cell


def mark_of(cell: Any) -> str:
    """Return the sign behind a cell."""
    return cell.mark if isinstance(cell, Cell) else ""


def _is_number(cell: Any) -> bool:
    return isinstance(value_of(cell), int | float)


def _text(cell: Any, form: str) -> str:
    """Return a cell as a person reads it.

    >>> _text(0.51, ".3f"), _text(1200, ""), _text(float("nan"), ".3f"), _text("all", ".3f")
    ('0.510', '1,200', '–', 'all')
    """
    if isinstance(cell, Cell) and cell.text is not None:
        return cell.text
    value = value_of(cell)
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return "–"
    if isinstance(value, str):
        return value
    return format(value, form or (",d" if isinstance(value, int) else ".4g"))


class Tabular(ABC):
    """Shows itself by `to_table`."""

    @abstractmethod
    def to_table(self) -> Table:
        """Return what a person reads."""

    def __repr__(self) -> str:
        return self.to_table().to_text()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()


def _markdown(table: Table) -> str:
    """Return title, table and notes as paragraphs; a bold row has its texts in bold.

    A line break within a cell becomes a space, and a bar is escaped.
    """
    lines = [_bars(column.title for column in table.columns)]
    lines.append(f"|{''.join(_RULES[side] for side in table.aligned())}")
    for index, (row, texts) in enumerate(zip(table.rows, table.texts(), strict=True)):
        around = _AROUND.get(table.emphasis.get(index, ""), "")
        marked = (f"{text} {mark_of(cell)}".rstrip() for cell, text in zip(row, texts, strict=True))
        lines.append(_bars(f"{around}{text}{around}" if text else "" for text in marked))
    notes = [*(f"**{_safe(line)}**" for line in table.alarms), *map(_safe, table.notes)]
    return "\n\n".join(filter(None, [_safe(table.title), "\n".join(lines), "  \n".join(notes)]))


def _bars(texts: Iterable[str]) -> str:
    return f"| {' | '.join(map(_safe, texts))} |"


def _safe(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _html(table: Table, *, sortable: bool) -> str:
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
    """Return a long name without its middle, as names often differ only at their ends.

    A text of several words is not a name and is not cut.

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
