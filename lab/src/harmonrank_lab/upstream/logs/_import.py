"""Import: raw files become parts of parquet, chunk by chunk."""

__all__ = ["import_log"]

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from harmonrank.data.reading import writing
from harmonrank.support.errors import DataError
from harmonrank.support.events import ImportStep
from harmonrank.support.storage import resumable_folder, write_json
from harmonrank_lab.upstream.logs._chunks import Chunk, cut, read_chunk
from harmonrank_lab.upstream.logs._columns import LOG_TOML, LogColumns
from harmonrank_lab.upstream.logs._manifest import (
    FORMAT,
    MANIFEST,
    about,
    manifest_of,
    positives_of,
)
from harmonrank_lab.upstream.logs._progress import ChunkRecord, ImportProgress, Survey, TablesRecord
from harmonrank_lab.upstream.logs._source import LogSource, check_labels
from harmonrank_lab.upstream.logs._split import PARTS, Cuts, KeyCounts
from harmonrank_lab.upstream.logs._tables import write_table

_CHUNK_BYTES = 48 << 20
_TABLES = ("users.parquet", "items.parquet")


def import_log(
    source: LogSource,
    path: str | Path,
    *,
    rows: tuple[int | None, int | None, int | None] = (None, None, None),
    overwrite: bool = False,
    on_step: Callable[[ImportStep], None] | None = None,
    chunk_bytes: int = _CHUNK_BYTES,
) -> dict[str, Any]:
    """Write a log as partitioned parquet; return its manifest.

    Memory does not grow with the log. A run that was cut short is continued by the same call:
    finished parts stay, and the result is the same. The folder appears under its name when
    complete.

    Args:
        source: The raw files.
        path: The folder to write.
        rows: Wanted rows of train, valid and test; those left out share the rest as 2 : 1 : 1.
        overwrite: Replace an earlier import.
        on_step: Is called with progress.
        chunk_bytes: How much of a csv file is read at once.
    """
    chunks = [chunk for file in source.files for chunk in cut(file, chunk_bytes)]
    if not chunks:
        raise DataError(f"'{source.files[0]}' has no rows; expected at least four.")
    files = [*source.files, *(t.path for t in source.tables), *source.joined, source.truth]
    key = {
        "format": FORMAT,
        "kind": source.columns.kind,
        "files": [_stamp(file) for file in files if file is not None],
        "settings": dict(source.settings),
        "rows": list(rows),
        "chunk_bytes": chunk_bytes,
    }
    columns = _with_truth(source)
    with resumable_folder(path, key, holds=LOG_TOML, overwrite=overwrite) as folder:
        run = _Run(source, columns, folder, chunks, on_step)
        survey = run.survey(rows)
        records = list(run.parts(survey))
        tables = run.tables()
        manifest = manifest_of(source, columns, survey, records, tables)
        write_json(folder / MANIFEST, manifest)
        (folder / LOG_TOML).write_text(columns.to_toml(), encoding="utf-8")
        run.progress.forget()
    return manifest


def _stamp(path: Path) -> list[Any]:
    about = path.stat()
    return [str(path.resolve()), about.st_size, about.st_mtime_ns]


def _with_truth(source: LogSource) -> LogColumns:
    users, items = ({t.table.file: t.table for t in source.tables}.get(f) for f in _TABLES)
    truth = {}
    if source.truth is not None:
        there = pl.read_parquet_schema(source.truth)
        truth = {o: f"true_{o}" for o in source.columns.objectives if f"true_{o}" in there}
    return replace(source.columns, users=users, items=items, truth=truth)


@dataclass(frozen=True)
class _Run:
    """One import into a folder that may hold what an earlier run finished."""

    source: LogSource
    columns: LogColumns
    folder: Path
    chunks: Sequence[Chunk]
    on_step: Callable[[ImportStep], None] | None

    @property
    def progress(self) -> ImportProgress:
        """What an earlier run finished."""
        return ImportProgress(self.folder)

    def survey(self, rows: tuple[int | None, int | None, int | None]) -> Survey:
        """Return where the split cuts and how many rows each chunk has, from one pass."""
        kept = self.progress.find("survey", Survey)
        if kept is not None and len(kept["sizes"]) == len(self.chunks):
            first, valid, test = kept["cuts"]
            if first < valid < test:
                return kept
        counts, sizes = KeyCounts(), []
        for number, chunk in enumerate(self.chunks):
            column = read_chunk(chunk, [self.source.key_column], self.source.texts).to_series()
            if column.null_count():
                raise DataError(
                    f"Column '{column.name}' of '{chunk.path}' has {column.null_count():,} "
                    "missing values; drop those rows."
                )
            counts.add(self.source.key(column))
            sizes.append(len(column))
            self._say("survey", number + 1, sum(sizes))
        cuts = counts.cuts(rows)
        survey = Survey(cuts=[cuts.first, cuts.valid, cuts.test], sizes=sizes)
        self.progress.put("survey", survey)
        return survey

    def parts(self, survey: Survey) -> Iterator[ChunkRecord]:
        """Write every chunk's rows into the parts they belong to; yield what was written."""
        for part in PARTS:
            (self.folder / part).mkdir(exist_ok=True)
        cuts, first = Cuts(*survey["cuts"]), 0
        for number, (chunk, size) in enumerate(zip(self.chunks, survey["sizes"], strict=True)):
            record = self.progress.find(f"{number:05}", ChunkRecord)
            kept = record is not None and self._finished(record, number, chunk, size)
            if record is None or not kept:
                record = self._chunk(number, chunk, cuts, first, size)
                self.progress.put(f"{number:05}", record)
            first += size
            self._say("import", number + 1, first, kept=kept)
            yield record

    def _finished(self, record: ChunkRecord, number: int, chunk: Chunk, size: int) -> bool:
        """Whether a record is of this chunk and its files are as it tells."""
        mine = {_part_file(part, number) for part in PARTS}
        objectives = set(self.columns.objectives)
        return (
            (record["source"], record["rows"]) == (chunk.path.name, size)
            and set(record["files"]) <= mine
            and all(set(told["positives"]) == objectives for told in record["files"].values())
            and self.progress.whole(record)
        )

    def _chunk(self, number: int, chunk: Chunk, cuts: Cuts, first: int, size: int) -> ChunkRecord:
        raw = read_chunk(chunk, self.source.reads, self.source.texts)
        if len(raw) != size:
            raise DataError(
                f"'{chunk.path}' has {len(raw):,} rows where {size:,} were counted before: it or "
                "the record of an earlier run was changed, so import it again."
            )
        frame = self.source.clean(raw)
        check_labels(frame, self.columns.objectives, chunk.path)
        part = cuts.part(self.source.key(raw[self.source.key_column]))
        frame = frame.insert_column(
            0, pl.int_range(first, first + len(raw), eager=True).alias("row")
        )
        if self.columns.truth:
            frame = frame.hstack(self._truth(first, len(raw)))
        files: dict[str, Any] = {}
        for k, name in enumerate(PARTS):
            mine = frame.filter(part == k)
            if len(mine):
                file = _part_file(name, number)
                with writing():
                    mine.write_parquet(self.folder / file, compression="zstd", compression_level=1)
                files[file] = {**about(self.folder / file), **positives_of(mine, self.columns)}
        odd = self.source.count(raw)
        return {"source": chunk.path.name, "files": files, "odd": odd, "rows": len(raw)}

    def _truth(self, first: int, count: int) -> pl.DataFrame:
        truth = pl.scan_parquet(self.source.truth or "").select(self.columns.truth.values())
        frame = truth.slice(first, count).collect()
        if len(frame) != count:
            raise DataError(
                f"'{self.source.truth}' has fewer rows than the log; it belongs to another one."
            )
        return frame

    def tables(self) -> TablesRecord:
        """Write the tables of features; return what was written."""
        kept = self.progress.find("tables", TablesRecord)
        names = {table.table.file for table in self.source.tables}
        if kept is not None and set(kept["files"]) == names and self.progress.whole(kept):
            return kept
        odd: Counter[str] = Counter()
        files: dict[str, Any] = {}
        for number, table in enumerate(self.source.tables):
            target = self.folder / table.table.file
            rows = write_table(table, target, odd)
            files[table.table.file] = {**about(target), "rows": rows}
            self._say("features", number + 1, rows)
        told = TablesRecord(files=files, odd=dict(odd))
        self.progress.put("tables", told)
        return told

    def _say(self, stage: str, done: int, rows: int, *, kept: bool = False) -> None:
        if self.on_step is None:
            return
        total = len(self.source.tables) if stage == "features" else len(self.chunks)
        self.on_step(ImportStep(stage, done, total, rows, kept))


def _part_file(part: str, number: int) -> str:
    return f"{part}/part-{number:05}.parquet"
