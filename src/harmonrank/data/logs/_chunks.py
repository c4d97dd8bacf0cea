"""Chunks: parts of a large file that can be read one by one, the same ones each time."""

__all__ = ["Chunk", "cut", "read_chunk", "to_int"]

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from harmonrank.data.table_paths import file_kind
from harmonrank.data.tables import column_names
from harmonrank.errors import DataError, shown

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
    """Return all columns as whole numbers of 64 bits, or say which value is not one."""
    return pl.DataFrame([_whole(frame[name], path) for name in frame.columns])


def _whole(series: pl.Series, path: Path) -> pl.Series:
    number = series.cast(pl.Float64, strict=False)
    fits = (number == number.floor()) & (number.abs() < 2.0**63)
    found = number.set(~fits, None).cast(pl.Int64)
    if not series.dtype.is_float():
        # As it is where it can be: a float has too few digits for a large id.
        exact = series.cast(pl.Int64, strict=False)
        found = exact.zip_with(exact.is_not_null(), found)
    wrong = series.is_not_null() & found.is_null()
    if wrong.any():
        raise DataError(
            f"Column '{series.name}' of '{path}' must hold whole numbers of 64 bits. "
            f"Got {shown(series.filter(wrong)[0])}; repair or drop such rows."
        )
    return found
