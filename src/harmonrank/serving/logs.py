"""Logs: one JSON object per line on standard error, without payloads."""

__all__ = ["log_event"]

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

_LOUD = {
    "internal error": "error",
    "reload refused": "error",
    "upstream replaced": "warning",
    "recalibration refused": "warning",
    "worker died": "warning",
    "worker not started": "error",
}


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
