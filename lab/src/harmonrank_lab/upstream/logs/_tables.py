"""Tables of features: raw files in, parquet with ascending ids out."""

__all__ = ["read_features", "write_table"]

from collections import Counter
from pathlib import Path

import polars as pl

from harmonrank.data.reading import writing
from harmonrank.support.errors import DataError
from harmonrank_lab.upstream.logs._chunks import cut, read_chunk
from harmonrank_lab.upstream.logs._source import TableSource

_CHUNK_BYTES = 16 << 20


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
    found = whole.unique(key, keep="first", maintain_order=True)
    if odd is not None and found.height < whole.height:
        odd[f"{key} repeated in {source.path.name}: first kept"] += whole.height - found.height
    return found


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
