"""Chunks: parts of a large file that can be read one by one, the same ones each time."""

__all__ = ["Chunk", "cut", "read_chunk", "to_int"]

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from harmonrank.data.tables import column_names, file_kind
from harmonrank.errors import DataError

_MISSING = ["\\N", "NULL", "null", "NaN", "nan"]

_PARQUET_ROWS = 500_000


@dataclass(frozen=True)
class Chunk:
    """A part of a file: bytes that begin and end with a line, or rows of a parquet file."""

    path: Path
    begin: int
    end: int


def cut(path: Path, size: int) -> list[Chunk]:
    """Return chunks of about `size` bytes; where they begin depends on the file alone."""
    if file_kind(path) == "parquet":
        rows = pl.scan_parquet(path).select(pl.len()).collect().item()
        ends = [*range(_PARQUET_ROWS, rows, _PARQUET_ROWS), rows]
        return [Chunk(path, a, b) for a, b in zip([0, *ends], ends, strict=False) if b > a]
    chunks = []
    with path.open("rb") as stream:
        stream.readline()
        begin, length = stream.tell(), path.stat().st_size
        while begin < length:
            stream.seek(min(begin + size, length))
            stream.readline()
            chunks.append(Chunk(path, begin, stream.tell()))
            begin = stream.tell()
    return chunks


def read_chunk(chunk: Chunk, columns: Sequence[str], *, text: bool = False) -> pl.DataFrame:
    """Return some columns of a chunk, as whole numbers or as text.

    Raises:
        DataError: A value is not a whole number, or a line has too many fields.
    """
    if file_kind(chunk.path) == "parquet":
        lazy = pl.scan_parquet(chunk.path).slice(chunk.begin, chunk.end - chunk.begin)
        frame = lazy.select(columns).collect()
        return frame.select(pl.all().cast(pl.String)) if text else to_int(frame, chunk.path)
    names = column_names(chunk.path)
    with chunk.path.open("rb") as stream:
        stream.seek(chunk.begin)
        header = ",".join(f'"{name}"' for name in names).encode() + b"\n"
        lines = header + stream.read(chunk.end - chunk.begin)
    if text:
        return _parse(chunk, lines, columns, pl.String)
    try:
        return _parse(chunk, lines, columns, pl.Int64)
    except DataError:
        # Files saved again by other programs have 1.0 for 1; to find out costs time, so only now.
        return to_int(_parse(chunk, lines, columns, pl.String), chunk.path)


def _parse(
    chunk: Chunk, lines: bytes, columns: Iterable[str], kind: type[pl.DataType]
) -> pl.DataFrame:
    types = dict.fromkeys(columns, kind)
    try:
        return pl.read_csv(
            lines, columns=list(types), schema_overrides=types, null_values=_MISSING
        ).select(list(types))
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise DataError(
            f"'{chunk.path}' cannot be read as csv: {reason}; download or write it again."
        ) from None


def to_int(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return all columns as whole numbers, or say which value is not one."""
    number = frame.select(pl.all().cast(pl.Float64, strict=False))
    for name in frame.columns:
        before, after = frame[name], number[name]
        wrong = before.is_not_null() & (after.is_null() | (after != after.floor()))
        if wrong.any():
            raise DataError(
                f"Column '{name}' of '{path}' must hold whole numbers. "
                f"Got '{before.filter(wrong)[0]}'; repair or drop such rows."
            )
    whole = [c for c, kind in frame.schema.items() if kind.is_integer()]
    return number.with_columns(frame.select(whole)).select(pl.all().cast(pl.Int64))
