"""A table in a terminal: columns that do not fit side by side follow in blocks below."""

__all__ = ["parts", "plain"]

from collections.abc import Iterator
from io import StringIO

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from harmonrank.support.table import Column, Table, mark_of

_LEAST = 12  # Characters that a key needs at least.


def plain(table: Table, width: int) -> str:
    """Return the lines without colour."""
    file = StringIO()
    Console(width=width, file=file, color_system=None, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def parts(table: Table, width: int) -> Iterator[RenderableType]:
    """Yield title, rows, alarms and notes."""
    lines = _lines(table)
    if table.title:
        yield Text(table.title, style="bold")
    for number, (widths, gap) in enumerate(_blocks(table, lines, width)):
        if number:
            yield Text("")
        yield _grid(table, lines, widths, gap, first=not number)
    for alarm in table.alarms:
        yield Text(alarm, style="bold red")
    for note in table.notes:
        yield Text(note, style="dim")


def _lines(table: Table) -> list[list[str]]:
    """Return the texts of each row with their marks, or with room for marks of other rows."""
    marks = [[mark_of(cell) for cell in row] for row in table.rows]
    room = [max(map(len, column)) for column in zip(*marks, strict=True)]
    return [
        [text + f" {m:<{r}}" * bool(r) for text, m, r in zip(texts, own, room, strict=True)]
        for texts, own in zip(table.texts(), marks, strict=True)
    ]


def _blocks(table: Table, lines: list[list[str]], width: int) -> list[tuple[dict[int, int], int]]:
    """Return the columns of each block with their widths, and the gap between them.

    If not all columns fit, spare columns are left out and the texts of the key, which names a row,
    are cut. If that is not enough, the other columns are divided into blocks, each with the key.
    """

    def natural(i: int, column: Column, title: str) -> int:
        texts = (
            part for text in (title, *(line[i] for line in lines)) for part in text.split("\n")
        )
        return min(max(map(cell_len, texts)), column.widest or width)

    shown = [(i, column) for i, column in enumerate(table.columns) if not column.heading]
    whole = {i: natural(i, column, column.title) for i, column in shown}
    fewer = {i: natural(i, c, c.short or c.title) for i, c in shown if not c.spare}
    for widths, gap in ((whole, 2), (whole, 1), (fewer, 1)):
        if _total(widths, gap) <= width:
            return [(widths, gap)]
    key = _key(table, lines)
    longest = max(key, key=lambda i: fewer[i])
    room = width - (_total(fewer, 1) - fewer[longest])
    if room >= _LEAST:
        return [(fewer | {longest: room}, 1)]
    head = {i: min(fewer[i], max(width // (2 + len(key)), 1)) for i in key}
    blocks = [dict(head)]
    for i, own in fewer.items():
        if i in key:
            continue
        if len(blocks[-1]) > len(key) and _total(blocks[-1] | {i: own}, 2) > width:
            blocks.append(dict(head))
        blocks[-1][i] = min(own, max(width - 2 - _total(head, 2), 1))
    return [(block, 2) for block in blocks]


def _key(table: Table, lines: list[list[str]]) -> list[int]:
    """Return the columns that name a row: the first one, or two if only these are unique."""
    headings = [i for i, column in enumerate(table.columns) if column.heading]
    shown = [i for i, column in enumerate(table.columns) if not (column.heading or column.spare)]

    def differ(key: list[int]) -> bool:
        return len({tuple(line[i] for i in headings + key) for line in lines}) == len(lines)

    one, two = shown[:1], shown[:2]
    return two if differ(two) and not differ(one) else one


def _total(widths: dict[int, int], gap: int) -> int:
    return sum(widths.values()) + gap * (len(widths) - 1)


def _grid(
    table: Table, lines: list[list[str]], widths: dict[int, int], gap: int, *, first: bool
) -> Grid:
    """Return a block; blocks after the first leave out rows that are empty in them."""
    grid = Grid(box=None, padding=(0, gap, 0, 0), header_style="bold", pad_edge=False)
    aligned = table.aligned()
    for i, width in widths.items():
        column = table.columns[i]
        title = column.short if column.short and cell_len(column.title) > width else column.title
        grid.add_column(_set(title, aligned[i], width), no_wrap=not column.widest, max_width=width)
    headings = [i for i, column in enumerate(table.columns) if column.heading]
    key = _key(table, lines)
    above: list[str] = []
    for index, line in enumerate(lines):
        heading = [line[i] for i in headings]
        if heading != above:
            grid.add_row(Text(", ".join(heading), style="italic"))
        above = heading
        name, *others = (_set(line[i], aligned[i], width) for i, width in widths.items())
        if first or any(line[i].strip() for i in widths if i not in key):
            style = table.emphasis.get(index, "")
            grid.add_row("  " * bool(headings) + name, *others, style=style)
    return grid


def _set(text: str, side: str, width: int) -> str:
    # The grid would strip the spaces that keep room for a mark.
    return " " * (width - cell_len(text)) * (side == "right") + text
