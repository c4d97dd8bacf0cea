"""Writing a split: a parquet file per part, read and written a piece at a time."""

__all__ = ["split"]

from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data.reading.parquet import PIECE_ROWS, ParquetWriter, pieces
from harmonrank.data.reading.table_files import TableFiles
from harmonrank.data.reading.table_paths import Paths
from harmonrank.data.schema import Schema
from harmonrank.data.splitting import PARTS, Cut, split_rows
from harmonrank.support.storage.files import new_folder, write_json

_FACTS = "split.json"
"""The file that tells the folder of a split from any other."""


def split(
    log: Paths,
    output: str | Path,
    schema: Schema | None = None,
    cut: Cut | None = None,
    *,
    overwrite: bool = False,
    on_rows: Callable[[int, int], None] = lambda *_: None,
) -> dict[str, Any]:
    """Cut a log into train, valid and test tables in a folder; requests stay whole.

    All columns pass through, rows stay in order, and memory does not grow with a parquet table.
    The folder appears when it is complete.

    Args:
        log: A file, a folder, a glob, a URL or a list of them.
        output: The folder: train.parquet, test.parquet, valid.parquet if there are such rows,
            split.json, and schema.toml.
        schema: Names the columns of times and of requests, and the labels to count.
        cut: How; by time where there is a column of times, else by request.
        overwrite: Replace the folder if it holds a split.
        on_rows: Called with the rows done and the rows in all.

    Returns:
        What split.json holds: how it was cut, and rows, requests and positives
        of each part.
    """
    time, request = (None, None) if schema is None else (schema.time, schema.request)
    cut = cut or Cut("time" if time else "request")
    parts = split_rows(log, cut, time=time, request=request)
    counts = {name: count for name, count in parts.counts.items() if count}
    labels = [] if schema is None else list(schema.names)
    positives = {name: dict.fromkeys(labels, 0) for name in counts}
    done = 0
    with new_folder(output, holds=_FACTS, overwrite=overwrite) as folder:
        with ExitStack() as stack:
            files = {n: ParquetWriter(folder / f"{n}.parquet") for n in counts}
            writers = {n: stack.enter_context(writer) for n, writer in files.items()}
            frames = stack.enter_context(closing(_frames(TableFiles.of(log))))
            for frame in frames:
                part = parts.part[done : done + frame.height]
                for name, writer in writers.items():
                    rows = frame.filter(pl.Series(part == PARTS.index(name)))
                    if rows.height:
                        writer.put(rows)
                        _count(rows, labels, positives[name])
                done += frame.height
                on_rows(done, len(parts.part))
        facts = {**parts.to_dict(), "positives": positives}
        write_json(folder / _FACTS, facts)
        if schema is not None:
            (folder / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")
    return facts


def _frames(files: TableFiles) -> Generator[pl.DataFrame, None, None]:
    if files.kind == "parquet":
        yield from pieces(files, PIECE_ROWS)
        return
    frame = files.read(files.columns)
    yield from frame.iter_slices(PIECE_ROWS)


def _count(rows: pl.DataFrame, labels: list[str], into: dict[str, int]) -> None:
    for name in labels:
        if name in rows.columns and (
            rows.schema[name].is_numeric() or rows.schema[name] == pl.Boolean
        ):
            into[name] += int(np.nansum(rows[name].cast(pl.Float64).to_numpy() > 0))
