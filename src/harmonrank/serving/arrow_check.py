"""Arrow streams are checked before Polars reads them: a damaged one could end the process.

What a stream says about its own sizes decides how much memory a reader asks for. So each message,
type and buffer is compared with the bytes that are there. Numbers, truth values and text are let
through, plain and uncompressed; a context or a score is nothing else.
"""

__all__ = ["check_stream"]

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank.serving.http import HttpError
from harmonrank.support.errors import DataError

_SCHEMA, _BATCH = 1, 3
_INT, _FLOAT = 2, 3
_NULL, _BOOL, _TEXT, _LARGE_TEXT, _TEXT_VIEW = 1, 6, 5, 20, 24
_CONTINUED = 0xFFFFFFFF
_MOST_COLUMNS = 10_000
_INLINE = 12  # Shorter texts are inside of their view.
_VIEW = np.dtype([("length", "<i4"), ("prefix", "<i4"), ("buffer", "<i4"), ("offset", "<i4")])


@dataclass(frozen=True)
class _Table:
    """A table of a flatbuffer; to look beyond its bytes raises `struct.error`."""

    raw: bytes
    place: int

    def read(self, form: str, place: int) -> Any:
        if place < 0:
            raise struct.error("before the begin")
        return struct.unpack_from(f"<{form}", self.raw, place)[0]

    def field(self, number: int) -> int | None:
        """Return where a field is; None if it has its default."""
        table = self.place - self.read("i", self.place)
        if 4 + 2 * number >= self.read("H", table):
            return None
        offset = self.read("H", table + 4 + 2 * number)
        return self.place + offset if offset else None

    def number(self, number: int, form: str, default: int = 0) -> int:
        place = self.field(number)
        return default if place is None else int(self.read(form, place))

    def table(self, number: int) -> "_Table | None":
        place = self.field(number)
        return None if place is None else _Table(self.raw, place + self.read("I", place))

    def vector(self, number: int) -> tuple[int, int]:
        """Return where the elements of a list begin, and how many there are."""
        place = self.field(number)
        if place is None:
            return 0, 0
        begin = place + self.read("I", place)
        return begin + 4, self.read("I", begin)

    def pairs(self, number: int) -> np.ndarray:
        """Return a list of pairs of 64-bit numbers, (n, 2)."""
        begin, count = self.vector(number)
        if begin + 16 * count > len(self.raw):
            raise struct.error("beyond the end")
        return np.frombuffer(self.raw, "<i8", 2 * count, begin).reshape(count, 2)


def check_stream(raw: bytes, max_rows: int) -> None:
    """Refuse what is no Arrow IPC stream of plain columns, or not what it says.

    Raises:
        DataError: With the reason.
    """
    try:
        _check(raw, max_rows)
    except (struct.error, ValueError, OverflowError, IndexError) as error:
        if isinstance(error, DataError):
            raise
        raise _refused("it ends too early or is damaged") from None


def _refused(reason: str) -> DataError:
    return DataError(f"The body is no Arrow IPC stream: {reason}.")


def _check(raw: bytes, max_rows: int) -> None:
    columns: list[tuple[int, int]] | None = None
    rows = 0
    for head, body in _messages(raw):
        kind, header = head.number(1, "B"), head.table(2)
        if header is None:
            raise _refused("a message is empty")
        if kind == _SCHEMA and columns is None:
            columns = _columns(header)
        elif kind == _BATCH and columns is not None:
            rows += _batch(header, body, columns, max_rows - rows)
        else:
            raise _refused("expected a schema and then rows; send text plain, not as a dictionary")
    if columns is None:
        raise _refused("it has no schema")


def _messages(raw: bytes) -> Iterator[tuple[_Table, memoryview]]:
    place, view = 0, memoryview(raw)
    while place < len(raw):
        mark, size = struct.unpack_from("<II", raw, place)
        if mark != _CONTINUED:
            raise _refused("it does not begin like one")
        place += 8
        if size == 0:
            if place != len(raw):
                raise _refused("bytes follow its end")
            return
        if size > len(raw) - place:
            raise _refused("it ends too early")
        meta = raw[place : place + size]
        head = _Table(meta, struct.unpack_from("<I", meta)[0])
        place += size
        length = head.number(3, "q")
        if not 0 <= length <= len(raw) - place:
            raise _refused("it ends too early")
        yield head, view[place : place + length]
        place += length


def _columns(schema: _Table) -> list[tuple[int, int]]:
    """Return the type of each column, and the bits of a number."""
    begin, count = schema.vector(1)
    if schema.number(0, "h") != 0:
        raise _refused("its numbers must be little-endian")
    if count > _MOST_COLUMNS:
        raise _refused(f"it has {count:,} columns")
    found = []
    for at in range(begin, begin + 4 * count, 4):
        field = _Table(schema.raw, at + schema.read("I", at))
        kind, shape = field.number(2, "B"), field.table(3)
        bits = 0
        if kind == _INT and shape is not None:
            bits = shape.number(0, "i")
        elif kind == _FLOAT and shape is not None:
            bits = {1: 32, 2: 64}.get(shape.number(0, "h"), 0)
        plain = kind in (_NULL, _BOOL, _TEXT, _LARGE_TEXT, _TEXT_VIEW) or bits in (8, 16, 32, 64)
        if not plain or field.vector(5)[1] or field.table(4) is not None:
            raise _refused("columns must hold numbers, truth values or plain text")
        found.append((kind, bits))
    return found


def _batch(head: _Table, body: memoryview, columns: Sequence[tuple[int, int]], most: int) -> int:
    rows = head.number(0, "q")
    if head.field(3) is not None:
        raise _refused("it is compressed; send it uncompressed")
    if not 0 <= rows <= most:
        raise HttpError(413, "The table has more rows than are scored at once; send less.")
    nodes, buffers = head.pairs(1), head.pairs(2)
    if len(nodes) != len(columns) or (nodes[:, 0] != rows).any():
        raise _refused("its columns differ in length from its rows")
    if ((nodes[:, 1] < 0) | (nodes[:, 1] > rows)).any():
        raise _refused("it counts more nulls than rows")
    ends = buffers.sum(axis=1)
    if (buffers < 0).any() or (ends < 0).any() or (ends > len(body)).any():
        raise _refused("a column lies beyond its bytes")
    parts = iter([body[a : a + n] for a, n in buffers.tolist()])
    begin, views = head.vector(4)
    extra = iter([head.read("q", begin + 8 * n) for n in range(min(views, len(columns)))])
    for (kind, bits), (_, nulls) in zip(columns, nodes.tolist(), strict=True):
        _column(kind, bits, rows, nulls, parts, extra)
    if next(parts, None) is not None:
        raise _refused("it has more data than columns")
    return rows


def _column(
    kind: int, bits: int, rows: int, nulls: int, parts: Iterator[memoryview], extra: Iterator[int]
) -> None:
    if kind == _NULL:
        return
    valid = _next(parts)
    if (len(valid) or nulls) and len(valid) < -(-rows // 8):
        raise _refused("a column has too few validity bits")
    data = _next(parts)
    if kind in (_TEXT, _LARGE_TEXT):
        _text(data, _next(parts), rows, "<i4" if kind == _TEXT else "<i8")
    elif kind == _TEXT_VIEW:
        _views(data, [_next(parts) for _ in range(_count(extra))], rows)
    elif len(data) < -(-rows * (bits or 1) // 8):
        raise _refused("a column has too few values")


def _next(parts: Iterator[memoryview]) -> memoryview:
    found = next(parts, None)
    if found is None:
        raise _refused("it has less data than columns")
    return found


def _count(extra: Iterator[int]) -> int:
    found = next(extra, -1)
    if not 0 <= found <= 1 << 20:
        raise _refused("a text column has no buffers")
    return found


def _text(offsets: memoryview, text: memoryview, rows: int, form: str) -> None:
    if rows == 0 and len(offsets) == 0:
        return
    ends = np.frombuffer(offsets[: (rows + 1) * np.dtype(form).itemsize], form)
    if len(ends) != rows + 1 or ends[0] < 0 or (np.diff(ends) < 0).any() or ends[-1] > len(text):
        raise _refused("a text column lies beyond its bytes")
    _utf8(text[int(ends[0]) : int(ends[-1])])


def _views(data: memoryview, buffers: list[memoryview], rows: int) -> None:
    views = np.frombuffer(data[: rows * _VIEW.itemsize], _VIEW)
    if len(views) != rows or (views["length"] < 0).any():
        raise _refused("a text column has too few values")
    far = views[views["length"] > _INLINE]
    if not len(far):
        return
    sizes = np.array([len(part) for part in buffers], np.int64)
    known = (far["buffer"] >= 0) & (far["buffer"] < len(sizes)) & (far["offset"] >= 0)
    if (
        not known.all()
        or (far["offset"].astype(np.int64) + far["length"] > sizes[far["buffer"]]).any()
    ):
        raise _refused("a text column lies beyond its bytes")


def _utf8(text: memoryview) -> None:
    try:
        str(text, "utf-8")
    except UnicodeDecodeError:
        raise _refused("a text column is no UTF-8") from None
