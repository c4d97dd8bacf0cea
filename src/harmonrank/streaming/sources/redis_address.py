"""Redis address: where a Redis stream is, a connection to it, and what its errors mean for us."""

__all__ = ["RedisAddress", "asking"]

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from harmonrank.support.errors import DataError, SourceError, UsageError, did_you_mean
from harmonrank.support.extras import import_extra

_EXPECTED = "as in redis://localhost:6379/0/events?group=harmonrank"
_SECONDS = 30.0


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
        for name in options:
            if name not in known:
                raise UsageError(
                    f"The address of a Redis stream has no '{name}'. {did_you_mean(name, known)}"
                )
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
