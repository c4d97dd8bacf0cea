"""Memory: how much a command may take, and whether a table fits into it."""

__all__ = ["memory_limit", "needed_memory"]

import re
from pathlib import Path

from harmonrank.data.reading.parquet import count_rows
from harmonrank.data.reading.table_files import TableFiles
from harmonrank.data.reading.table_paths import Paths
from harmonrank.data.schema import Schema
from harmonrank.support.errors import UsageError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SHARE = 0.5  # Of the memory that is free: others use some, and so does what follows.
_FALLBACK = 4 << 30
# What a fit and its checks take beside each number that is read, measured at 10M rows.
_BYTES = 24


def memory_limit(text: str | None) -> int:
    """Return how many bytes '3GB' says; without it, half of what is free.

    >>> memory_limit("3GB") == 3 << 30
    True

    Raises:
        UsageError: It is no such size.
    """
    if text is None:
        return int(_SHARE * _free())
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)i?B?\s*", text, re.IGNORECASE)
    if found is None or not float(found[1]):
        raise UsageError(f"--memory takes a size such as 3GB or 500MB. Got '{text}'.")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _free() -> int:
    """Return how many bytes are free, as the system tells; 4 GB where it does not."""
    try:
        facts = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return _FALLBACK
    found = re.search(r"MemAvailable:\s+([0-9]+) kB", facts)
    return _FALLBACK if found is None else int(found[1]) << 10


def needed_memory(source: Paths, schema: Schema) -> int:
    """Return about how many bytes it takes to have the rows of a parquet table in memory.

    0 of a table of another kind, whose rows can be counted only by reading them.
    """
    files = TableFiles.of(source)
    if files.kind != "parquet":
        return 0
    given = (schema.request, schema.sample_weight, schema.position)
    columns = 2 * len(schema.names) + len(schema.context) + sum(name is not None for name in given)
    return count_rows(files) * columns * _BYTES
