"""Folder: files of events that keep coming, as a source.

A file is complete when it appears under its name, as writers that rename make it; names that begin
with a dot or an underscore are passed over, and so is whatever ends neither in .parquet nor in
.jsonl. Files are read in the order of their names, once each; one that comes later is read next,
even if its name comes before others. A position is the names that were read and how far in the
file that is being read. Names of files that are gone are forgotten, so it stays as short as the
folder.

A file that cannot be read is tried a few times. Then it is passed over, and its name and the reason
are in every position from then on, so that it can be mended and put there under another name.
"""

__all__ = ["FolderSink", "FolderSource", "open_sink", "open_source"]

import re
from collections import deque
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated

import polars as pl
from msgspec import Meta, Struct, to_builtins

from harmonrank.data import Schema
from harmonrank.data.reading.parquet import count_rows, read_piece, writing
from harmonrank.data.reading.table_files import reading
from harmonrank.streaming.sources.event_reading import read_frame, read_lines, settled_by, to_lines
from harmonrank.streaming.sources.events import EventForm
from harmonrank.streaming.sources.source import EventChunk, Offset
from harmonrank.support.errors import DataError, OutputError, SourceError, refuse_unknown
from harmonrank.support.storage.decoding import decode
from harmonrank.support.storage.files import new_file

FORMS = ("parquet", "jsonl")
"""How files of events are written."""

_NUMBER = re.compile(r"events-(\d{12})\.\w+")
_TRIES = 3
_LOOK = 10_000


class FolderSink:
    """Writes events to numbered files, which appear when they are complete."""

    def __init__(self, folder: Path, form: str) -> None:
        refuse_unknown([form], FORMS, "There are no files of the form '{}'.")
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._form = folder, form
        names = (_NUMBER.fullmatch(path.name) for path in folder.iterdir())
        self._number = max((int(name[1]) for name in names if name), default=0)

    def write(self, events: pl.DataFrame) -> None:
        """Write events to the next file."""
        if not events.height:
            return
        self._number += 1
        path = self._folder / f"events-{self._number:012}.{self._form}"
        try:
            with new_file(path) as made:
                if self._form == "jsonl":
                    made.write_bytes(b"".join(line + b"\n" for line in to_lines(events)))
                else:
                    with writing():
                        plain = events.drop("fault", "raw", strict=False)
                        # Twice as fast to read as the default, and little larger.
                        plain.write_parquet(made, compression="lz4", statistics=False)
        except OutputError:
            self._number -= 1
            raise

    def close(self) -> None:
        """Do nothing: every file is closed."""


class _Refused(Struct, forbid_unknown_fields=True):
    file: str
    reason: str


class _Position(Struct, forbid_unknown_fields=True):
    """How far a folder is read.

    Attributes:
        taken: Names of files that were read to their ends.
        refused: Those that could not be read.
        file: The one that is being read.
        rows: How many of its rows were read.
        bytes: Where its next line begins, if it has lines.
        kinds: What context columns hold.
    """

    taken: set[str] = set()
    refused: list[_Refused] = []
    file: str | None = None
    rows: Annotated[int, Meta(ge=0)] = 0
    bytes: Annotated[int, Meta(ge=0)] = 0
    kinds: dict[str, str] = {}

    def done(self) -> None:
        """Leave the present file, which was read to its end."""
        assert self.file is not None
        self.taken.add(self.file)
        self.file, self.rows, self.bytes = None, 0, 0

    def refuse(self, reason: str) -> None:
        """Leave the present file, which cannot be read."""
        assert self.file is not None
        self.refused.append(_Refused(self.file, reason))
        self.done()


class FolderSource:
    """Hands out the events of a folder's files."""

    def __init__(self, folder: Path, schema: Schema, kinds: Mapping[str, str]) -> None:
        if not folder.is_dir():
            raise DataError(f"There is no folder '{folder}'; make it, or check its name.")
        self._folder, self._form = folder, EventForm(schema, kinds)
        self._tries: dict[str, int] = {}
        self._position = _Position()
        self._queue: deque[str] = deque()

    def read(self, after: Offset | None, most: int) -> EventChunk | None:
        """Return the next rows of files that are there."""
        position = _Position() if after is None else decode(after, _Position, "A position")
        if position != self._position:
            self._queue.clear()  # It belongs to another position.
        form = self._form.with_kinds(position.kinds)
        frames: list[pl.DataFrame] = []
        notes: list[str] = []
        missing = most
        while missing > 0 and (position.file or self._next(position)):
            try:
                form, frame = self._piece(form, position, missing)
            except DataError as error:
                if frames:
                    break  # The next call will meet it again.
                # It is told by itself: who reads on from there does not meet the file again.
                notes.append(self._failed(position, error))
                break
            frames.append(frame)
            missing -= frame.height
        position.kinds = dict(form.kinds)
        self._position = position
        if not frames and not notes:
            return None
        events = pl.concat([form.empty(), *frames], how="vertical_relaxed")
        offset = to_builtins(position) | {"taken": sorted(position.taken)}
        return EventChunk(events, offset, tuple(notes))

    def _next(self, position: _Position) -> bool:
        """Turn to the next file; tell whether there is one."""
        if not self._queue:
            names = self._names()
            # A listing that has lost its newest file is one of a disk that is away for a moment.
            if position.taken and max(position.taken) in names:
                position.taken &= names
            self._queue.extend(sorted(names - position.taken))
        position.file = self._queue.popleft() if self._queue else None
        return position.file is not None

    def _names(self) -> set[str]:
        try:
            return {
                path.name
                for path in self._folder.iterdir()
                if _form_of(path.name) and not path.name.startswith((".", "_"))
            }
        except OSError as error:
            raise SourceError(f"'{self._folder}' cannot be read: {error.strerror}.") from None

    def _piece(
        self, form: EventForm, position: _Position, most: int
    ) -> tuple[EventForm, pl.DataFrame]:
        """Return rows of the present file, and move the position behind them."""
        assert position.file is not None
        path = self._folder / position.file
        if _form_of(path.name) == "jsonl":
            return self._lines(form, position, path, most)
        try:
            rows = count_rows(path)
            raw = read_piece(path, position.rows, most)
        except pl.exceptions.PanicException:  # It is no Exception.
            raise DataError(f"'{path}' cannot be read as parquet: it is damaged.") from None
        if rows < position.rows:
            raise DataError(f"'{path}' has become shorter; expected {position.rows:,} rows.")
        form = form.settled(raw.to_dict())
        events = read_frame(form, raw)
        position.rows += raw.height
        if position.rows >= rows:
            position.done()
        return form, events

    def _lines(
        self, form: EventForm, position: _Position, path: Path, most: int
    ) -> tuple[EventForm, pl.DataFrame]:
        with reading(path, "JSON lines"), path.open("rb") as stream:
            if form.unsettled():
                form = settled_by(form, list(islice(stream, _LOOK)), every=True)
            stream.seek(position.bytes)
            lines = list(islice(stream, most))
        full = [line for line in lines if not line.isspace()]
        form = settled_by(form, full)  # A column may have its first value far behind.
        events = read_lines(form, full)
        position.rows += len(full)
        position.bytes += sum(map(len, lines))
        if len(lines) < most:
            position.done()
        return form, events

    def _failed(self, position: _Position, error: DataError) -> str:
        """Try a file again later, or pass it over for good and say so."""
        name = position.file or ""
        self._tries[name] = self._tries.get(name, 0) + 1
        if self._tries[name] < _TRIES:
            self._queue.clear()
            raise SourceError(f"{error} It will be tried again.") from None
        del self._tries[name]
        rows = f" after {position.rows:,} rows" if position.rows else ""
        position.refuse(str(error))
        return f"{error} It is passed over{rows}; put it there under another name to have it read."

    def committed(self, offset: Offset) -> None:
        """Do nothing: files stay where they are."""

    def waiting(self) -> int | None:
        """Return how many files are there that were not read to their ends."""
        return len(self._names() - self._position.taken)

    def close(self) -> None:
        """Do nothing: no file stays open."""


def _form_of(name: str) -> str | None:
    return next((form for form in FORMS if name.endswith(f".{form}")), None)


def open_source(address: str, schema: Schema, kinds: Mapping[str, str]) -> FolderSource:
    """Return a folder as a source of events."""
    return FolderSource(Path(address), schema, kinds)


def open_sink(address: str, form: str) -> FolderSink:
    """Return a folder as a sink of events."""
    return FolderSink(Path(address), form)
