"""Tables and what their columns mean; worlds whose best result is known."""

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.data.context import UNKNOWN, ContextEncoder
    from harmonrank.data.examination import chances_at
    from harmonrank.data.hashing import hash_bits, hash_shares
    from harmonrank.data.kinds import lineage
    from harmonrank.data.log import Log
    from harmonrank.data.reading.logs import read_log
    from harmonrank.data.reading.tables import Source, open_table
    from harmonrank.data.rows.log_blocks import log_blocks
    from harmonrank.data.schema import Schema

__all__ = [
    "UNKNOWN",
    "ContextEncoder",
    "Log",
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
    "Schema": "schema",
    "Source": "reading.tables",
    "open_table": "reading.tables",
    "read_log": "reading.logs",
    "chances_at": "examination",
    "lineage": "kinds",
    "hash_bits": "hashing",
    "hash_shares": "hashing",
    "log_blocks": "rows.log_blocks",
}

# Whoever only writes a file, or decodes one, waits for no table library.
__getattr__ = lazy_names(__name__, _PLACES)


def __dir__() -> list[str]:
    return __all__
