"""Redis sink: events as entries of a Redis stream."""

__all__ = ["RedisSink"]

import polars as pl

from harmonrank.streaming.sources.event_reading import to_lines
from harmonrank.streaming.sources.redis_address import RedisAddress, asking

_TOGETHER = 256


class RedisSink:
    """Adds events to a stream: several to an entry as JSON lines, or one as its fields.

    What is written again after a lost connection may be there twice; the join takes the first.
    """

    def __init__(self, address: RedisAddress) -> None:
        self._address = address
        self._client = address.client()

    def write(self, events: pl.DataFrame) -> None:
        """Add events at the end of the stream."""
        batch = self._address.batch
        entries = _entries_of_lines(events, batch) if batch > 1 else _entries_of_fields(events)
        with asking(self._address):
            for first in range(0, len(entries), _TOGETHER):
                pipeline = self._client.pipeline(transaction=False)
                for entry in entries[first : first + _TOGETHER]:
                    pipeline.xadd(self._address.stream, entry)
                pipeline.execute()

    def close(self) -> None:
        """Give back the connection."""
        self._client.close()


def _entries_of_lines(events: pl.DataFrame, batch: int) -> list[dict[str, bytes]]:
    lines = to_lines(events)
    return [
        {"events": b"\n".join(lines[first : first + batch])}
        for first in range(0, len(lines), batch)
    ]


def _entries_of_fields(events: pl.DataFrame) -> list[dict[str, str]]:
    plain = events.drop("fault", "raw", strict=False)
    plain = plain.with_columns(plain["time"].dt.to_string("iso:strict"))
    return [
        {name: str(value) for name, value in row.items() if value is not None}
        for row in plain.iter_rows(named=True)
    ]
