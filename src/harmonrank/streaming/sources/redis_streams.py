"""Redis Streams: entries of events, read by a consumer group.

An entry holds either the fields of one event, or a field `events` with several as JSON lines, which
is faster. New entries are asked for with XREADGROUP, and acknowledged with XACK when the state
that came of them is committed, never before. A position is the id of an entry. After a start, or a
lost connection, what lies behind the position is read again by its ids, whoever was given it
before; an entry at or before the position is acknowledged and passed over. So an entry may be
delivered twice, and counts once.

A stream is read in one order by one reader: use one group for each state that is made of it.
"""

__all__ = ["RedisAddress", "RedisSource", "open_sink", "open_source"]

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import polars as pl
from msgspec import Meta, Struct, to_builtins

from harmonrank.data import Schema
from harmonrank.streaming.sources.event_reading import read_lines, settled_by, to_lines
from harmonrank.streaming.sources.events import EVENT_COLUMNS, EventForm
from harmonrank.streaming.sources.source import EventChunk, Offset
from harmonrank.support.errors import DataError, SourceError, UsageError, refuse_unknown
from harmonrank.support.extras import import_extra
from harmonrank.support.storage.decoding import decode

_EXPECTED = "as in redis://localhost:6379/0/events?group=harmonrank"
_SECONDS = 30.0
_EVENTS = b"events"
_TEXT = frozenset(EVENT_COLUMNS) - {"time", "position"} | {"objective"}
_FIRST_COUNT, _MOST_COUNT, _ACKNOWLEDGED, _SENT = 64, 10_000, 1000, 256
_Id = tuple[int, int]


@dataclass(frozen=True)
class RedisAddress:
    """A stream of a Redis server, and how to read or write it.

    Attributes:
        server: The URL of the server and one of its databases; a password in it is never shown.
        shown: The whole address without user and password.
        stream: The key of the stream.
        group: The consumer group; one for each state that is made of the stream.
        consumer: Our name in it.
        batch: How many events a sink puts into an entry.
    """

    server: str = field(repr=False)
    shown: str
    stream: str
    group: str = "harmonrank"
    consumer: str = "harmonrank"
    batch: int = 500

    def __str__(self) -> str:
        return self.shown

    @classmethod
    def parse(cls, address: str) -> Self:
        """Read `redis://user:password@host:port/db/stream?group=name`.

        >>> print(RedisAddress.parse("redis://me:secret@localhost/0/events"))
        redis://localhost:6379/0/events
        """
        parts = urlsplit(address)
        database, _, stream = parts.path.removeprefix("/").partition("/")
        try:
            port = parts.port or 6379
        except ValueError:
            port = 0
        if not parts.hostname or not port or not database.isdecimal() or not stream:
            raise UsageError(
                f"The address of a Redis stream must name host, database and stream, {_EXPECTED}."
            )
        options: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
        known = ("group", "consumer", "batch")
        refuse_unknown(options, known, "The address of a Redis stream has no '{}'.")
        batch = options.get("batch", "500")
        if not batch.isdecimal() or not 1 <= int(batch) <= 100_000:
            raise UsageError(f"`batch` must be a whole number from 1 to 100,000. Got '{batch}'.")
        server = f"{parts.scheme}://{parts.netloc}/{database}"
        shown = f"{parts.scheme}://{parts.hostname}:{port}/{database}/{stream}"
        return cls(server, shown, unquote(stream), **options | {"batch": int(batch)})

    def client(self) -> Any:
        """Return a client; it connects when it is first asked something."""
        redis = import_extra("redis", who="A stream at redis://…")
        # A command that is sent twice by itself would be told the second answer only.
        once = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        wait = {"socket_timeout": _SECONDS, "socket_connect_timeout": _SECONDS}
        return redis.Redis.from_url(self.server, **wait, retry=once, protocol=2)


@contextmanager
def asking(address: RedisAddress) -> Iterator[None]:
    """Turn what a server, or its absence, answers into our errors.

    Raises:
        SourceError: It is away, starting, or out of room: what was asked may be tried again.
        DataError: It refuses us, or the key is no stream.
    """
    errors = import_extra("redis", who="A stream at redis://…").exceptions
    try:
        yield
    except (errors.AuthenticationError, errors.AuthorizationError, errors.NoPermissionError) as e:
        raise DataError(f"'{address}' refuses us: {_reason(e)}; check user and password.") from None
    except errors.ResponseError as error:
        if str(error).startswith("WRONGTYPE"):
            raise DataError(f"'{address}' is no stream: {_reason(error)}.") from None
        raise SourceError(f"'{address}' answered: {_reason(error)}.") from None
    except (errors.RedisError, OSError) as error:
        raise SourceError(f"'{address}' is away: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).rstrip(".")


def entries_of(events: pl.DataFrame, batch: int) -> list[dict[str, Any]]:
    """Return events as entries of so many events each."""
    if batch > 1:
        lines = to_lines(events)
        starts = range(0, len(lines), batch)
        return [{"events": b"\n".join(lines[first : first + batch])} for first in starts]
    plain = events.drop("fault", "raw", strict=False)
    plain = plain.with_columns(plain["time"].dt.to_string("iso:strict"))
    return [
        {name: str(value) for name, value in row.items() if value is not None}
        for row in plain.iter_rows(named=True)
    ]


def lines_of(fields: Mapping[bytes, bytes], form: EventForm) -> list[bytes]:
    """Return the events of an entry as JSON lines; a single one by what the form says of it."""
    if _EVENTS in fields:
        return [line for line in fields[_EVENTS].split(b"\n") if line.strip()]
    row = {_text(name): _text(value) for name, value in fields.items()}
    return [json.dumps({name: _value(form, name, text) for name, text in row.items()}).encode()]


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _value(form: EventForm, name: str, text: str) -> Any:
    """Return the value of a field, which Redis keeps as text."""
    if not text:
        return None
    if name in _TEXT or form.kinds.get(name) == "text":
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if type(value) in (int, float) else text


class _Position(Struct, forbid_unknown_fields=True):
    """How far a stream is read.

    Attributes:
        id: Of the last entry that was read.
        entries: How many entries were read, or removed before reading began; None at first.
        kinds: What context columns hold.
    """

    id: Annotated[str, Meta(pattern=r"^\d{1,20}-\d{1,20}$")] = "0-0"
    entries: Annotated[int, Meta(ge=0)] | None = None
    kinds: dict[str, str] = {}


class RedisSource:
    """Hands out the events of a Redis stream."""

    def __init__(self, address: RedisAddress, schema: Schema, kinds: Mapping[str, str]) -> None:
        self._address, self._form = address, EventForm(schema, kinds)
        self._client = address.client()
        self._at: _Id | None = None
        self._given: _Id = (0, 0)
        self._per_entry = 0.0

    def read(self, after: Offset | None, most: int) -> EventChunk | None:
        """Return the events of the next entries."""
        position = _Position() if after is None else decode(after, _Position, "A position")
        form = self._form.with_kinds(position.kinds)
        begun, taken, count = position.id, list[Mapping[bytes, bytes]](), 0
        try:
            with asking(self._address):
                if self._at != _id(position.id):
                    self._go_to(position.id)
                notes = self._check_removed(position)
                while count < most and (entries := self._entries(most - count)):
                    more = sum(len(lines_of(fields, form)) for _, fields in entries)
                    taken += [fields for _, fields in entries]
                    position.id = entries[-1][0].decode()
                    if position.entries is not None:
                        position.entries += len(entries)
                    self._at, count = _id(position.id), count + more
                    self._per_entry = max(1.0, more / len(entries))
        except SourceError:
            # What was on its way is read again by its ids.
            self._at = None
            raise
        if position.id == begun and not notes:
            return None
        form = settled_by(form, _lines(taken, form))
        position.kinds = dict(form.kinds)
        events = read_lines(form, _lines(taken, form))
        return EventChunk(events, to_builtins(position), notes)

    def _go_to(self, entry: str) -> None:
        """Stand behind an entry, whatever the group was given before."""
        name, group = self._address.stream, self._address.group
        groups = {facts["name"].decode(): facts for facts in self._groups()}
        if group not in groups:
            self._client.xgroup_create(name, group, id=entry, mkstream=True)
            self._given = _id(entry)
        else:
            self._given = _id(groups[group]["last-delivered-id"])
        self._at = _id(entry)
        self._acknowledge(entry)

    def _check_removed(self, position: _Position) -> tuple[str, ...]:
        """Count entries that were removed before they were read, as a stream that is trimmed has.

        What is removed is taken for the oldest; of entries that are deleted one by one nobody
        tells whether they were read.
        """
        facts = self._client.xinfo_stream(self._address.stream)
        if "entries-added" not in facts:  # Redis before 7
            return ()
        removed = int(facts["entries-added"]) - int(facts["length"])
        lost = 0 if position.entries is None else removed - position.entries
        position.entries = max(removed, position.entries or 0)
        if lost <= 0:
            return ()
        return (
            f"{lost:,} entries of '{self._address}' were removed from it before they were read, "
            "and are lost; let it keep more.",
        )

    def _groups(self) -> list[dict[str, Any]]:
        if not self._client.exists(self._address.stream):
            return []
        groups: list[dict[str, Any]] = self._client.xinfo_groups(self._address.stream)
        return groups

    def _entries(self, missing: int) -> list[tuple[bytes, Mapping[bytes, bytes]]]:
        """Return the next entries: those that the group was given before, then new ones."""
        assert self._at is not None
        name = self._address.stream
        most = _MOST_COUNT if self._per_entry else _FIRST_COUNT
        count = min(most, max(1, int(missing / max(1.0, self._per_entry))))
        if self._at < self._given:
            after, until = ("({}-{}".format(*self._at), "{}-{}".format(*self._given))
            entries = self._client.xrange(name, after, until, count)
            if entries:
                return list(entries)
            self._given = self._at  # The rest was removed.
        while True:
            reply = self._client.xreadgroup(
                self._address.group, self._address.consumer, {name: ">"}, count
            )
            entries = reply[0][1] if reply else []
            known = [key for key, _ in entries if _id(key) <= self._at]
            if known:
                self._client.xack(name, self._address.group, *known)
            if len(known) < len(entries) or not entries:
                return list(entries[len(known) :])

    def committed(self, offset: Offset) -> None:
        """Acknowledge all entries up to a position."""
        position = decode(offset, _Position, "A position")
        with asking(self._address):
            self._acknowledge(position.id)

    def _acknowledge(self, entry: str) -> None:
        name, group = self._address.stream, self._address.group
        while True:
            pending = self._client.xpending_range(name, group, "-", entry, _ACKNOWLEDGED)
            if not pending:
                return
            self._client.xack(name, group, *[each["message_id"] for each in pending])

    def waiting(self) -> int | None:
        """Return how many entries the group was not given yet."""
        with asking(self._address):
            for entry in self._groups():
                if entry["name"].decode() == self._address.group:
                    lag = entry.get("lag")
                    return None if lag is None else int(lag)
            return int(self._client.xlen(self._address.stream))

    def close(self) -> None:
        """Give back the connection."""
        self._client.close()


def _lines(taken: list[Mapping[bytes, bytes]], form: EventForm) -> list[bytes]:
    return [line for fields in taken for line in lines_of(fields, form)]


def _id(text: str | bytes) -> _Id:
    first, _, second = (text.decode() if isinstance(text, bytes) else text).partition("-")
    return int(first), int(second or 0)


class RedisSink:
    """Adds events to a stream.

    What is written again after a lost connection may be there twice; the join takes the first.
    """

    def __init__(self, address: RedisAddress) -> None:
        self._address = address
        self._client = address.client()

    def write(self, events: pl.DataFrame) -> None:
        """Add events at the end of the stream."""
        entries = entries_of(events, self._address.batch)
        with asking(self._address):
            for first in range(0, len(entries), _SENT):
                pipeline = self._client.pipeline(transaction=False)
                for entry in entries[first : first + _SENT]:
                    pipeline.xadd(self._address.stream, entry)
                pipeline.execute()

    def close(self) -> None:
        """Give back the connection."""
        self._client.close()


def open_source(address: str, schema: Schema, kinds: Mapping[str, str]) -> RedisSource:
    """Return a Redis stream as a source of events."""
    return RedisSource(RedisAddress.parse(address), schema, kinds)


def open_sink(address: str, form: str) -> RedisSink:  # noqa: ARG001
    """Return a Redis stream as a sink of events; it has no files, so their form means nothing."""
    return RedisSink(RedisAddress.parse(address))
