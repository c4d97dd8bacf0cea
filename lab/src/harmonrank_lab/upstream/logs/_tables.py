"""Tables of features: raw files in, parquet with ascending ids out."""

__all__ = ["write_table"]

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from harmonrank.data.reading import ParquetWriter
from harmonrank.support.errors import DataError
from harmonrank_lab.upstream.logs._chunks import cut, read_chunk
from harmonrank_lab.upstream.logs._source import TableSource

_CHUNK_BYTES = 16 << 20
_ROWS_AT_ONCE = 2_000_000


def write_table(source: TableSource, target: Path, odd: Counter[str]) -> int:
    """Write a table with ascending unique ids, adding to the oddities; return its rows.

    A file that is not in order is sorted range by range, so that memory does not grow with it.
    Of rows with the same id the first is kept.
    """
    ids = _convert(source, target, odd)
    if len(ids) > 1 and not (ids[1:] > ids[:-1]).all():
        rough = target.with_name(f"{target.name}.rough")
        target.replace(rough)
        kept = _sort(rough, target, source.table.id, ids)
        rough.unlink()
        odd[f"{source.table.id} repeated in {source.path.name}: first kept"] += len(ids) - kept
        return kept
    return len(ids)


def _convert(source: TableSource, target: Path, odd: Counter[str]) -> np.ndarray:
    ids = []
    with ParquetWriter(target, compression="zstd") as writer:
        for chunk in cut(source.path, _CHUNK_BYTES):
            raw = read_chunk(chunk, source.reads, frozenset(source.reads))
            odd.update(source.count(raw))
            frame = source.clean(raw)
            ids.append(_ids(frame, source))
            writer.put(frame)
    if not ids:
        raise DataError(f"'{source.path}' has no rows; download it again.")
    return np.concatenate(ids)


def _ids(frame: pl.DataFrame, source: TableSource) -> np.ndarray:
    column = frame[source.table.id]
    if column.null_count():
        raise DataError(
            f"Column '{source.table.id}' of '{source.path}' must hold whole numbers; "
            f"{column.null_count():,} are missing or something else, so download it again."
        )
    return column.to_numpy()


def _sort(rough: Path, target: Path, key: str, ids: np.ndarray) -> int:
    """Write the rows of one range of ids after the other, each sorted; return their number."""
    edges = np.unique(np.append(np.sort(ids)[::_ROWS_AT_ONCE], ids.max() + 1)).tolist()
    kept = 0
    with ParquetWriter(target, compression="zstd") as writer:
        for low, high in pairwise(edges):
            inside = pl.col(key).is_between(low, high, closed="left")
            frame = pl.scan_parquet(rough).filter(inside).collect(engine="streaming")
            frame = frame.unique(key, keep="first", maintain_order=True).sort(key)
            writer.put(frame)
            kept += len(frame)
    return kept
