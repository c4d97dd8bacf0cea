"""Settings of a service: how it runs, what its processes share, and how they log."""

__all__ = [
    "CONFIG",
    "COUNTERS",
    "DRIFT",
    "KEY",
    "STATE",
    "OnEvent",
    "ServeConfig",
    "check_binding",
    "check_key",
    "log_event",
]

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from harmonrank.support.errors import UsageError
from harmonrank.support.options import Positive

# Files of the folder that all processes of a service share.
CONFIG = "config.json"
"""The settings, from the first process to its workers."""
COUNTERS = "counters"
DRIFT = "drift.json"
"""The last report on drift, from the first process to its workers."""
STATE = "state"
"""Appears when all that the processes share is there."""

KEY = "HARMONRANK_API_KEY"
"""The environment variable that holds the API key; it is never written to a file."""
OnEvent: TypeAlias = Callable[[str, Mapping[str, Any]], None]
"""Is called with the name of an event and its facts."""

Rows = Annotated[int, Meta(ge=1, le=10_000_000)]
_LOUD = {
    **dict.fromkeys(("internal error", "reload refused", "worker not started"), "error"),
    **dict.fromkeys(("upstream replaced", "recalibration refused", "worker died"), "warning"),
}


@dataclass(frozen=True)
class ServeConfig:
    """Settings of a service.

    Attributes:
        target: The folder of a saved model or of a registry.
        name: The name of the model in the Open Inference Protocol.
        port: 0 takes any free port.
        points: Operating points beside those of the model: objective weights by name.
        at: The operating point that is served to a call that asks for none.
        max_bytes: Largest body of a request.
        max_rows: Most candidates in a request.
        queue: How many requests may wait in a worker; more are answered with 429.
        timeout: Time limit in seconds for reading a body, and for waiting in the queue.
        grace: Seconds that open requests have when the service stops.
        recalibrate: What happens when an upstream model was replaced.
        sample_rows: How many of the rows scored last the service keeps to measure drift on.
        drift_seconds: How often drift is measured.
        poll_seconds: How often a worker looks for a new version.
        access_log: Whether every request is logged, or only those that failed.
    """

    target: str
    name: str = "harmonrank"
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8080
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    points: dict[str, dict[str, float]] = field(default_factory=dict)
    at: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    max_bytes: Annotated[int, Meta(ge=1024, le=1 << 30)] = 16 << 20
    max_rows: Rows = 100_000
    queue: Annotated[int, Meta(ge=1, le=100_000)] = 256
    timeout: Positive = 10.0
    grace: Positive = 10.0
    recalibrate: Literal["ask", "auto", "off"] = "ask"
    sample_rows: Rows = 50_000
    drift_seconds: Positive = 10.0
    poll_seconds: Positive = 0.5
    access_log: bool = False


def check_binding(host: str, *, key: bool, anonymous: bool) -> None:
    """Refuse to listen beyond this machine without a key, unless told.

    >>> check_binding("127.0.0.1", key=False, anonymous=False)
    >>> check_binding("0.0.0.0", key=False, anonymous=False)
    Traceback (most recent call last):
    harmonrank.support.errors.UsageError: --host 0.0.0.0 can be reached from other machines; set
    an API key in HARMONRANK_API_KEY or --api-key-file, or pass --anonymous if anyone may ask.
    """
    if key or anonymous or _is_loopback(host):
        return
    raise UsageError(
        f"--host {host} can be reached from other machines; set an API key in HARMONRANK_API_KEY "
        "or --api-key-file, or pass --anonymous if anyone may ask."
    )


def check_key(key: str | None) -> None:
    """Refuse an API key that not every client can send in a header as it is.

    >>> check_key("s3cret")
    """
    if key is not None and not (key.isascii() and key.isprintable() and key == key.strip()):
        raise UsageError(
            "An API key is sent in a header, so it must be of letters, digits and signs of ASCII, "
            "without spaces at its ends; choose another."
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def log_event(event: str, facts: Mapping[str, Any]) -> None:
    """Write a line."""
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "level": _LOUD.get(event, "info"),
        "event": event,
        "pid": os.getpid(),
        **facts,
    }
    # One write per line, so that the lines of several processes do not mix.
    sys.stderr.write(msgspec.json.encode(line).decode() + "\n")
    sys.stderr.flush()
