"""Settings of a state: what decides its results, written once, compared at every start."""

__all__ = ["SETTINGS", "StreamIdentity", "identity_of", "make_folder", "read_identity"]

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

import harmonrank
from harmonrank.data import Schema
from harmonrank.registry.registry import now
from harmonrank.streaming.config import StreamConfig
from harmonrank.support.errors import OutputError, UsageError, shown
from harmonrank.support.storage.decoding import check_format
from harmonrank.support.storage.files import new_file, read_json, write_json
from harmonrank.support.storage.staging import swept

SETTINGS = "stream.json"
"""The file of a state that holds them."""
FORMAT = 2


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
    parts = {"source": _address(source), "schema": schema.to_dict(), **config.to_dict()}
    settings: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(parts))
    if not (state / SETTINGS).is_file():
        if state.is_dir() and any(not path.name.startswith(".") for path in state.iterdir()):
            raise OutputError(f"'{state}' is a folder of something else; choose another name.")
        return _new_identity(state, settings)
    swept(state / SETTINGS)
    found = read_identity(state)
    for name, before, after in _differences(found.settings, settings):
        if empty:
            return _new_identity(state, settings)
        raise UsageError(
            f"The state '{state}' was begun with {name} {shown(before)}. Got {shown(after)}; use "
            "the settings that it was begun with, or another --state."
        )
    return found


def _new_identity(state: Path, settings: dict[str, Any]) -> StreamIdentity:
    new = StreamIdentity(FORMAT, harmonrank.__version__, uuid.uuid4().hex[:8], now(), settings)
    with new_file(state / SETTINGS, overwrite=True) as made:
        write_json(made, msgspec.to_builtins(new))
    return new


def make_folder(state: Path) -> None:
    """Make the folder of a state, if it is not there."""
    try:
        state.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"The state '{state}' cannot be written: {error.strerror or error}; choose another "
            "folder."
        ) from None


def read_identity(state: Path) -> StreamIdentity:
    """Return the identity of a state that is there."""
    found = read_json(state / SETTINGS, StreamIdentity)
    check_format(f"'{state}' has stream", found.format, found.harmonrank, FORMAT)
    return found


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
