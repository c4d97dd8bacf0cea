"""Import: raw files become parts of parquet, chunk by chunk, by one key per row."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data.reading import writing
from harmonrank.support import DataError, OnEvent
from harmonrank.support.storage import new_folder, write_json
from harmonrank_lab.events import ImportStep
from harmonrank_lab.upstream.logs._chunks import Chunk, cut, read_chunk, write_table
from harmonrank_lab.upstream.logs._columns import LOG_TOML, PARTS, LogColumns, check_labels
from harmonrank_lab.upstream.logs._declared import LogSource
from harmonrank_lab.upstream.logs._imported import FORMAT, MANIFEST, about

_SHARES = (2, 1, 1)
"""The paper's 1M, 0.5M and 0.5M rows."""

_MOST_KEYS = 1 << 22

_CHUNK_BYTES = 48 << 20
_TABLES = ("users.parquet", "items.parquet")


@dataclass(frozen=True)
class Cuts:
    """Where the parts begin: train is [first, valid), valid [valid, test), test [test, ∞)."""

    first: int
    valid: int
    test: int

    def part(self, key: np.ndarray) -> np.ndarray:
        """Return 0, 1 or 2 for train, valid and test, and −1 for rows before all of them.

        >>> Cuts(first=1, valid=5, test=7).part(np.array([0, 1, 5, 6, 7])).tolist()
        [-1, 0, 1, 1, 2]
        """
        edges = [self.first, self.valid, self.test]
        return np.searchsorted(edges, key, side="right") - 1


class KeyCounts:
    """How many rows have each key, in memory that does not grow with the rows.

    Where there are more than four million different keys, two neighbours are counted as one, and
    again, so that a cut falls between pairs, fours, … of keys.
    """

    def __init__(self) -> None:
        self._keys, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._shift = 0

    def add(self, key: np.ndarray) -> None:
        """Count the rows of a chunk."""
        self._waiting.append(np.unique(key >> self._shift, return_counts=True))
        if sum(len(k) for k, _ in self._waiting) > _MOST_KEYS:
            self._merge()

    def _merge(self) -> None:
        parts = [(self._keys, self._counts), *self._waiting]
        self._waiting = []
        self._keys, self._counts = _summed(*map(np.concatenate, zip(*parts, strict=True)))
        while len(self._keys) > _MOST_KEYS:
            self._shift += 1
            self._keys, self._counts = _summed(self._keys >> 1, self._counts)

    def cuts(self, rows: tuple[int | None, int | None, int | None] = (None, None, None)) -> Cuts:
        """Return the cuts nearest to the wanted numbers of rows; those left out share the rest.

        Shares are 2 : 1 : 1. Test has the largest keys, valid those before it, train those
        before valid; rows before train are left out. Rows of one key stay together.

        Raises:
            DataError: There are fewer rows than wanted, or a part would be empty.
        """
        self._merge()
        total = int(self._counts.sum())
        counts = _wanted(total, rows)
        above = np.concatenate([np.cumsum(self._counts[::-1])[::-1], [0]])

        def cut(rows_above: int) -> int:
            place = int(np.abs(above - rows_above).argmin())
            key = self._keys[place] if place < len(self._keys) else self._keys[-1] + 1
            return int(key) << self._shift

        cuts = Cuts(*(cut(sum(counts[k:])) for k in range(3)))
        last = int(self._keys[-1]) << self._shift
        if not cuts.first < cuts.valid < cuts.test <= last:
            raise DataError(
                f"The log cannot be divided: {total:,} rows with {len(self._keys):,} different "
                "seconds or users leave a part empty; give a longer log or other numbers of rows."
            )
        return cuts


def _summed(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each key once, ascending, with the sum of its counts."""
    distinct, place = np.unique(keys, return_inverse=True)
    return distinct, np.bincount(place, counts).astype(np.int64)


def _wanted(total: int, rows: tuple[int | None, int | None, int | None]) -> list[int]:
    given = sum(n for n in rows if n is not None)
    rest, share = total - given, sum(s for s, n in zip(_SHARES, rows, strict=True) if n is None)
    if rest < (share > 0):
        raise DataError(f"The log has {total:,} rows, fewer than the {given:,} that are wanted.")
    shares = zip(_SHARES, rows, strict=True)
    counts = [rest * s // share if n is None else n for s, n in shares]
    if None in rows:
        # What rounding leaves goes to the first part that may have it.
        counts[rows.index(None)] += total - sum(counts)
    return counts


def import_log(
    source: LogSource,
    path: str | Path,
    *,
    rows: tuple[int | None, int | None, int | None] = (None, None, None),
    overwrite: bool = False,
    on_step: OnEvent | None = None,
    chunk_bytes: int = _CHUNK_BYTES,
) -> dict[str, Any]:
    """Write a log as partitioned parquet; return its manifest.

    Memory does not grow with the rows of the log. The folder appears under its name when complete.

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
    columns = _with_truth(source)
    with new_folder(path, holds=LOG_TOML, overwrite=overwrite) as folder:
        run = _Run(source, columns, folder, chunks, on_step or (lambda _: None))
        cuts, sizes = run.survey(rows)
        for part in PARTS:
            (folder / part).mkdir()
        for number, chunk in enumerate(chunks):
            run.chunk(number, chunk, cuts, sum(sizes[:number]), sizes[number])
        run.tables()
        manifest = run.manifest(cuts)
        write_json(folder / MANIFEST, manifest)
        (folder / LOG_TOML).write_text(columns.to_toml(), encoding="utf-8")
    return manifest


def _with_truth(source: LogSource) -> LogColumns:
    users, items = ({t.table.file: t.table for t in source.tables}.get(f) for f in _TABLES)
    truth = {}
    if source.truth is not None:
        there = pl.read_parquet_schema(source.truth)
        truth = {o: f"true_{o}" for o in source.columns.objectives if f"true_{o}" in there}
    return replace(source.columns, users=users, items=items, truth=truth)


@dataclass(frozen=True)
class _Run:
    """One import, and what it has counted so far."""

    source: LogSource
    columns: LogColumns
    folder: Path
    chunks: Sequence[Chunk]
    on_step: OnEvent
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    positives: dict[str, Counter[str]] = field(
        default_factory=lambda: {part: Counter() for part in PARTS}
    )
    odd: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)

    def survey(self, rows: tuple[int | None, int | None, int | None]) -> tuple[Cuts, list[int]]:
        """Return where the split cuts and how many rows each chunk has, from one pass."""
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
        return counts.cuts(rows), sizes

    def chunk(self, number: int, chunk: Chunk, cuts: Cuts, first: int, size: int) -> None:
        """Write the rows of a chunk into the parts they belong to."""
        raw = read_chunk(chunk, self.source.reads, self.source.texts)
        if len(raw) != size:
            raise DataError(
                f"'{chunk.path}' has {len(raw):,} rows where {size:,} were counted before: it was "
                "changed meanwhile, so import it again."
            )
        frame = self.source.clean(raw)
        check_labels(frame, self.columns.objectives, chunk.path)
        part = cuts.part(self.source.key(raw[self.source.key_column]))
        frame = frame.insert_column(0, pl.Series("row", np.arange(first, first + len(raw))))
        if self.columns.truth:
            frame = frame.hstack(self._truth(first, len(raw)))
        for k, name in enumerate(PARTS):
            mine = frame.filter(part == k)
            if len(mine):
                self._put(f"{name}/part-{number:05}.parquet", mine)
        self.odd.update(self.source.count(raw))
        self.read[chunk.path.name] += len(raw)
        self._say("import", number + 1, first + len(raw))

    def _put(self, file: str, rows: pl.DataFrame) -> None:
        with writing():
            rows.write_parquet(self.folder / file, compression="zstd", compression_level=1)
        self.files[file] = {"rows": len(rows), **about(self.folder / file)}
        sums = rows.select(pl.col(self.columns.objectives).cast(pl.Int64).sum())
        self.positives[file.partition("/")[0]].update(sums.row(0, named=True))

    def _truth(self, first: int, count: int) -> pl.DataFrame:
        truth = pl.scan_parquet(self.source.truth or "").select(self.columns.truth.values())
        frame = truth.slice(first, count).collect()
        if len(frame) != count:
            raise DataError(
                f"'{self.source.truth}' has fewer rows than the log; it belongs to another one."
            )
        return frame

    def tables(self) -> None:
        """Write the tables of features."""
        for number, table in enumerate(self.source.tables):
            target = self.folder / table.table.file
            rows = write_table(table, target, self.odd)
            self.files[table.table.file] = {"rows": rows, **about(target)}
            self._say("features", number + 1, rows)

    def manifest(self, cuts: Cuts) -> dict[str, Any]:
        """Return where the log came from, and what every file of it holds."""
        source, objectives = self.source, self.columns.objectives
        files = self.files.items()
        rows = {p: sum(f["rows"] for n, f in files if n.startswith(f"{p}/")) for p in PARTS}
        return {
            "format": FORMAT,
            "kind": self.columns.kind,
            "source": [{"file": f.name, "rows": self.read[f.name]} for f in source.files],
            "split": {"by": source.split_by, "cuts": [cuts.first, cuts.valid, cuts.test]},
            "settings": dict(source.settings),
            "rows": rows,
            "positives": {p: {o: self.positives[p][o] for o in objectives} for p in PARTS},
            "notes": list(source.notes),
            "oddities": {what: count for what, count in self.odd.items() if count},
            "files": self.files,
        }

    def _say(self, stage: str, done: int, rows: int) -> None:
        total = len(self.source.tables) if stage == "features" else len(self.chunks)
        self.on_step(ImportStep(stage, done, total, rows))
