"""Chunks: parts of a large file, the same ones each time; tables of features are read by them."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from harmonrank.data.reading import column_names, file_kind, writing
from harmonrank.support import DataError, shown
from harmonrank_lab.upstream.logs._columns import TableSource

_MISSING = ["\\N", "NULL", "null", "NaN", "nan"]

_PARQUET_ROWS = 500_000

_CHUNK_BYTES = 16 << 20


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


def read_chunk(
    chunk: Chunk, columns: Sequence[str], texts: Container[str] = frozenset()
) -> pl.DataFrame:
    """Return some columns of a chunk: `texts` as text, all others as whole numbers.

    Raises:
        DataError: A value is not a whole number, or a line has too many fields.
    """
    if file_kind(chunk.path) == "parquet":
        lazy = pl.scan_parquet(chunk.path).slice(chunk.begin, chunk.end - chunk.begin)
        frame = lazy.select(columns).collect()
        return _typed([_as_text(s) if s.name in texts else s for s in frame], texts, chunk.path)
    names = column_names(chunk.path)
    with chunk.path.open("rb") as stream:
        stream.seek(chunk.begin)
        header = ",".join(f'"{name}"' for name in names).encode() + b"\n"
        lines = header + stream.read(chunk.end - chunk.begin)
    types = {name: pl.String if name in texts else pl.Int64 for name in columns}
    try:
        return _parse(chunk, lines, types)
    except DataError:
        if all(name in texts for name in columns):
            raise
        # Files saved again by other programs have 1.0 for 1; to find out costs time, so only now.
        frame = _parse(chunk, lines, dict.fromkeys(columns, pl.String))
        return _typed(frame.get_columns(), texts, chunk.path)


def _as_text(series: pl.Series) -> pl.Series:
    if isinstance(series.dtype, pl.List | pl.Array):
        return series.cast(pl.List(pl.String)).list.join(",")
    return series.cast(pl.String)


def _parse(chunk: Chunk, lines: bytes, types: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    names = list(types)
    try:
        table = pl.read_csv(lines, columns=names, schema_overrides=types, null_values=_MISSING)
        return table.select(names)
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise DataError(
            f"'{chunk.path}' cannot be read as csv: {reason}; download or write it again."
        ) from None


def _typed(columns: list[pl.Series], texts: Container[str], path: Path) -> pl.DataFrame:
    """Return the columns that are not text as whole numbers, or say which value is not one."""
    return pl.DataFrame([s if s.name in texts else _whole(s, path) for s in columns])


def _whole(series: pl.Series, path: Path) -> pl.Series:
    number = series.cast(pl.Float64, strict=False)
    fits = (number == number.floor()) & (number.abs() < 2.0**63)
    whole = number.set(~fits, None).cast(pl.Int64)
    if not series.dtype.is_float():
        # As it is where it can be: a float has too few digits for a large id.
        exact = series.cast(pl.Int64, strict=False)
        whole = exact.zip_with(exact.is_not_null(), whole)
    wrong = series.is_not_null() & whole.is_null()
    if wrong.any():
        raise DataError(
            f"Column '{series.name}' of '{path}' must hold whole numbers of 64 bits. "
            f"Got {shown(series.filter(wrong)[0])}; repair or drop such rows."
        )
    return whole


def read_features(source: TableSource, odd: Counter[str] | None = None) -> pl.DataFrame:
    """Return a table of features, adding to the oddities; it must fit into memory, as networks do.

    Of rows with the same id the first is kept.
    """
    frames, key = [], source.table.id
    for chunk in cut(source.path, _CHUNK_BYTES):
        raw = read_chunk(chunk, source.reads, frozenset(source.reads))
        frames.append(source.clean(raw))
        if odd is not None:
            odd.update(source.count(raw))
    if not frames:
        raise DataError(f"'{source.path}' has no rows; expected at least one.")
    whole = pl.concat(frames)
    distinct = whole.unique(key, keep="first", maintain_order=True)
    if odd is not None and distinct.height < whole.height:
        odd[f"{key} repeated in {source.path.name}: first kept"] += whole.height - distinct.height
    return distinct


def write_table(source: TableSource, target: Path, odd: Counter[str]) -> int:
    """Write a table with ascending unique ids, adding to the oddities; return its rows."""
    frame = read_features(source, odd)
    if missing := frame[source.table.id].null_count():
        raise DataError(
            f"Column '{source.table.id}' of '{source.path}' must hold whole numbers; "
            f"{missing:,} are missing or something else, so download it again."
        )
    with writing():
        frame.sort(source.table.id).write_parquet(target, compression="zstd")
    return frame.height
