"""A table in a terminal: columns are cut or left out until a row is a line."""

__all__ = ["parts", "plain"]

from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from harmonrank.support.table._table import Table, mark_of

_LOST_WIDTH = _BOTH_ENDS = 12


def plain(table: Table, width: int) -> str:
    """Return the lines without colour."""
    file = StringIO()
    Console(width=width, file=file, color_system=None, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def parts(table: Table, width: int) -> Iterator[RenderableType]:
    """Yield title, rows, alarms and notes."""
    lines = _lines(table)
    layout, lost = _layout(table, lines, width)
    if table.title:
        yield Text(table.title, style="bold")
    yield _grid(table, lines, layout, whole=not lost)
    for more in _blocks(table, lines, lost, width):
        yield Text("")
        yield _grid(table, lines, more, whole=False)
    for alarm in table.alarms:
        yield Text(alarm, style="bold red")
    for note in table.notes:
        yield Text(note, style="dim")


def _lines(table: Table) -> list[list[str]]:
    """Return the texts of each row with their marks, or with room for those of other rows."""
    marks = [[mark_of(cell) for cell in row] for row in table.rows]
    room = [max(map(len, column)) for column in zip(*marks, strict=True)]
    return [
        [text + f" {m:<{r}}" * bool(r) for text, m, r in zip(texts, own, room, strict=True)]
        for texts, own in zip(table.texts(), marks, strict=True)
    ]


@dataclass(frozen=True)
class _Layout:
    """Which columns are shown, at most how wide, and how far apart."""

    widths: dict[int, int]
    gap: int

    @property
    def total(self) -> int:
        return sum(self.widths.values()) + self.gap * (len(self.widths) - 1)


def _layout(table: Table, lines: list[list[str]], width: int) -> tuple[_Layout, list[int]]:
    """Return what fits, and the columns for which there is no room."""
    columns = table.columns
    widths = {
        i: min(_natural(column.title, [line[i] for line in lines]), column.widest or width)
        for i, column in enumerate(columns)
        if not column.heading
    }
    for gap in (2, 1):
        if _Layout(widths, gap).total <= width:
            return _Layout(widths, gap), []
    for i in [i for i in reversed(widths) if columns[i].spare]:
        if _Layout(widths, 1).total > width:
            del widths[i]
    flexible = [i for i in widths if columns[i].least is not None]
    if not flexible or _Layout(widths, 1).total <= width:
        return _Layout(widths, 1), []
    for room in range(width, max(columns[i].least or 0 for i in flexible) - 1, -1):
        cut = {i: min(w, room) if i in flexible else w for i, w in widths.items()}
        if _Layout(cut, 1).total <= width:
            return _Layout(cut, 1), []
    # The first column says what a row is about, so it stays.
    first = min(widths)
    kept = {i: w for i, w in widths.items() if i not in flexible or i == first}
    spill = max(_Layout(kept, 1).total - width, 0)
    kept[first] = max(kept[first] - spill, columns[first].least or kept[first])
    return _Layout(kept, 1), [i for i in flexible if i != first]


def _blocks(table: Table, lines: list[list[str]], lost: list[int], width: int) -> Iterator[_Layout]:
    """Yield the other columns below each other, the first one beside them again."""
    place = next(i for i, column in enumerate(table.columns) if not column.heading)
    naturals = {
        i: _natural(table.columns[i].title, [line[i] for line in lines]) for i in (place, *lost)
    }
    first = {place: min(naturals[place], width // 3)}
    widths: dict[int, int] = {}
    for i in lost:
        own = {i: min(naturals[i], max(table.columns[i].least or 0, _LOST_WIDTH))}
        if widths and _Layout(first | widths | own, 2).total > width:
            yield _Layout(first | widths, 2)
            widths = {}
        widths |= own
    if widths:
        yield _Layout(first | widths, 2)


def _natural(title: str, texts: list[str]) -> int:
    return max(cell_len(part) for text in (title, *texts) for part in text.split("\n"))


def _grid(table: Table, lines: list[list[str]], layout: _Layout, *, whole: bool) -> Grid:
    """Return the columns of a layout; unless whole, without rows that say nothing in them."""
    grid = Grid(box=None, padding=(0, layout.gap, 0, 0), header_style="bold", pad_edge=False)
    aligned = table.aligned()
    for i, width in layout.widths.items():
        column = table.columns[i]
        title = column.short if column.short and cell_len(column.title) > width else column.title
        if len(title) > width >= _BOTH_ENDS:
            # Names of many objectives often differ at their ends alone.
            title = f"{title[: width - 5]}…{title[-4:]}"
        grid.add_column(_set(title, aligned[i], width), no_wrap=not column.widest, max_width=width)
    headings = [i for i, column in enumerate(table.columns) if column.heading]
    above: list[str] = []
    for index, line in enumerate(lines):
        heading = [line[i] for i in headings]
        if heading != above:
            grid.add_row(Text(", ".join(heading), style="italic"))
        above = heading
        first, *others = (_set(line[i], aligned[i], w) for i, w in layout.widths.items())
        if not whole and not "".join(others).strip():
            continue
        style = table.emphasis.get(index, "")
        grid.add_row("  " * bool(headings) + first, *others, style=style)
    return grid


def _set(text: str, side: str, width: int) -> str:
    # Not by the grid, which would strip what keeps a place free for a mark.
    return " " * (width - cell_len(text)) * (side == "right") + text
