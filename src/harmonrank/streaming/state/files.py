"""Files of a state that people read too: its settings, its history, and events set aside."""

__all__ = [
    "HISTORY",
    "SETTINGS",
    "AsideFiles",
    "History",
    "StreamIdentity",
    "identity_of",
    "read_history",
    "read_identity",
]

import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
import polars as pl

import harmonrank
from harmonrank.data import Schema
from harmonrank.data.reading.parquet import writing
from harmonrank.registry.registry import now
from harmonrank.streaming.config import StreamConfig
from harmonrank.streaming.loop_events import HistoryRecord
from harmonrank.support.errors import DataError, OutputError, UsageError, shown
from harmonrank.support.storage.decoding import check_format, decode_json
from harmonrank.support.storage.files import new_file, read_json, write_json
from harmonrank.support.storage.staging import flush_names, remove, swept

SETTINGS = "stream.json"
"""The file of a state with its settings."""
FORMAT = 2
HISTORY = "history.jsonl"
"""The file of a state with a line for every interval and every batch."""
ASIDE = "aside"
"""The folder of a state with events that were set aside."""
_MOST = 100_000


class StreamIdentity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which stream a state is of.

    Attributes:
        stream: Eight signs that no other stream has; the notes of its versions carry them.
        created: When, in UTC.
        settings: The source, the schema and the fields of `StreamConfig`, as JSON parts.
    """

    format: int
    harmonrank: str
    stream: str
    created: str
    settings: dict[str, Any]

    @property
    def schema(self) -> Schema:
        """Which column is what."""
        return Schema.from_dict(self.settings["schema"])


def identity_of(
    state: Path, source: str, schema: Schema, config: StreamConfig, *, empty: bool
) -> StreamIdentity:
    """Return the identity of a state, which is written if it is new.

    Args:
        state: The folder.
        source: The address of the source.
        schema: Which column is what.
        config: What decides the results.
        empty: Nothing was committed yet, so that other settings begin another stream.

    Raises:
        UsageError: It was begun with other settings; they are named.
        OutputError: The folder is of something else.
    """
    parts = {"source": _address(source), "schema": schema.to_dict(), **asdict(config)}
    settings: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(parts))
    if not (state / SETTINGS).is_file():
        if state.is_dir() and any(not path.name.startswith(".") for path in state.iterdir()):
            raise OutputError(f"'{state}' is a folder of something else; choose another name.")
        return _new_identity(state, settings)
    swept(state / SETTINGS)
    identity = read_identity(state)
    for name, before, after in _differences(identity.settings, settings):
        if empty:
            return _new_identity(state, settings)
        raise UsageError(
            f"The state '{state}' was begun with {name} {shown(before)}. Got {shown(after)}; use "
            "the settings that it was begun with, or another --state."
        )
    return identity


def _new_identity(state: Path, settings: dict[str, Any]) -> StreamIdentity:
    new = StreamIdentity(FORMAT, harmonrank.__version__, uuid.uuid4().hex[:8], now(), settings)
    with new_file(state / SETTINGS, overwrite=True) as made:
        write_json(made, msgspec.to_builtins(new))
    return new


def read_identity(state: Path) -> StreamIdentity:
    """Return the identity of a state that is there."""
    identity = read_json(state / SETTINGS, StreamIdentity)
    check_format(f"'{state}' has stream", identity.format, identity.harmonrank, FORMAT)
    return identity


def _address(source: str) -> str:
    """Return a source as settings keep it: a folder whole, a server without its password."""
    parts = urlsplit(source)
    if not parts.scheme:
        return str(Path(source).resolve())
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _differences(
    before: Mapping[str, Any], after: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the settings that differ, with their names."""
    for name in dict.fromkeys([*before, *after]):
        then, this = before.get(name), after.get(name)
        if isinstance(then, dict) and isinstance(this, dict):
            yield from _differences(then, this, f"{above}{name}.")
        elif then != this:
            yield f"{above}{name}", then, this


class History:
    """Appends lines, and takes back those that no commit knows of.

    A killed run may have written lines after its last commit. What they tell happens again, so
    they are cut off at the next start: every interval and batch is there once.

    Args:
        state: The folder of the stream's state.
        length: Of the file at the last commit, in bytes.
    """

    def __init__(self, state: Path, length: int) -> None:
        self._path, self.length = state / HISTORY, length
        self._lines: list[bytes] = []
        there = self._path.stat().st_size if self._path.exists() else 0
        if there < length:
            raise DataError(
                f"'{self._path}' has {there:,} bytes; expected at least {length:,}, as the last "
                "commit says. Put the file back, or begin a new state with `--backfill`."
            )
        if there > length:
            os.truncate(self._path, length)

    def add(self, record: HistoryRecord) -> None:
        """Keep a record until it is flushed."""
        self._lines.append(msgspec.json.encode(record) + b"\n")

    def flush(self) -> None:
        """Bring the records to the disk; may be tried again if it fails.

        Raises:
            OSError: The disk is full, or gone.
        """
        if not self._lines:
            return
        new = not self._path.exists()
        with self._path.open("ab") as stream:
            # What an attempt that failed has left is written over.
            stream.truncate(self.length)
            stream.seek(self.length)
            stream.write(b"".join(self._lines))
            stream.flush()
            os.fsync(stream.fileno())
        if new:
            flush_names(self._path.parent)
        self.length += sum(map(len, self._lines))
        self._lines = []


def read_history(state: Path) -> list[HistoryRecord]:
    """Return the records of a stream, oldest first; a line that is still being written is left out.

    Raises:
        DataError: There is no history, or a line is none of ours.
    """
    path = state / HISTORY
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(
            f"'{path}' cannot be read: {error.strerror or error}; name the state folder of a "
            "stream that has joined an interval."
        ) from None
    return [
        decode_json(line, HistoryRecord, f"Line {number:,} of '{path}'")  # type: ignore[arg-type]
        for number, line in enumerate(lines, 1)
    ]


class AsideFiles:
    """Gathers events until there is a file's worth of them.

    A file has the number of the commit that knows of it. What a killed run wrote after its last
    commit has a higher one, and is removed by the next start, which comes to the same events.

    Args:
        state: The folder of the stream's state.
        commit: The last one.
        held: Events that the last commit holds itself.
    """

    def __init__(self, state: Path, commit: int, held: pl.DataFrame | None) -> None:
        self._folder, self.held = state / ASIDE, held
        self._folder.mkdir(exist_ok=True)
        for path in self._folder.iterdir():
            later = path.stem.isdigit() and int(path.stem) > commit
            if later or (path.name.startswith(".") and path.suffix == ".partial"):
                remove(path)

    def add(self, events: pl.DataFrame) -> None:
        """Take events with their reasons."""
        if events.height:
            there = [] if self.held is None else [self.held]
            self.held = pl.concat([*there, events], how="diagonal_relaxed")

    def flush(self, commit: int, *, whole: bool) -> None:
        """Write a file of the coming commit, if there are enough events or the file is wanted.

        Raises:
            OutputError: The disk is full, or gone.
        """
        if self.held is None or not (whole or self.held.height >= _MOST):
            return
        with new_file(self._folder / f"{commit}.parquet", overwrite=True) as made, writing():
            self.held.write_parquet(made)
        self.held = None
