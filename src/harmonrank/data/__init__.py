"""Tables and what their columns mean."""

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.data.context import UNKNOWN, ContextEncoder
    from harmonrank.data.hashing import hash_bits, hash_shares
    from harmonrank.data.kinds import lineage
    from harmonrank.data.log import Log
    from harmonrank.data.reading.logs import read_log
    from harmonrank.data.reading.tables import Source, open_table
    from harmonrank.data.rows.log_blocks import LogBlocks, log_blocks
    from harmonrank.data.schema import Schema
    from harmonrank.data.values import chances_at

__all__ = [
    "UNKNOWN",
    "ContextEncoder",
    "Log",
    "LogBlocks",
    "Schema",
    "Source",
    "chances_at",
    "hash_bits",
    "hash_shares",
    "lineage",
    "log_blocks",
    "open_table",
    "read_log",
]

_PLACES = {
    "UNKNOWN": "context",
    "ContextEncoder": "context",
    "Log": "log",
    "LogBlocks": "rows.log_blocks",
    "Schema": "schema",
    "Source": "reading.tables",
    "chances_at": "values",
    "hash_bits": "hashing",
    "hash_shares": "hashing",
    "lineage": "kinds",
    "log_blocks": "rows.log_blocks",
    "open_table": "reading.tables",
    "read_log": "reading.logs",
}

# Whoever only writes a file, or decodes one, waits for no table library.
__getattr__ = lazy_names(__name__, _PLACES)


def __dir__() -> list[str]:
    return __all__
