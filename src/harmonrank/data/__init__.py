"""Tables and what their columns mean; worlds whose best result is known."""

from typing import TYPE_CHECKING

from harmonrank.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.data.context import UNKNOWN, ContextEncoder
    from harmonrank.data.log import Log
    from harmonrank.data.reading import read_log
    from harmonrank.data.schema import Schema
    from harmonrank.data.tables import Source, open_table

__all__ = ["UNKNOWN", "ContextEncoder", "Log", "Schema", "Source", "open_table", "read_log"]

_PLACES = {
    "UNKNOWN": "context",
    "ContextEncoder": "context",
    "Log": "log",
    "Schema": "schema",
    "Source": "tables",
    "open_table": "tables",
    "read_log": "reading",
}

# Whoever only writes a file, or decodes one, waits for no table library.
__getattr__ = lazy_names(__name__, _PLACES)


def __dir__() -> list[str]:
    return __all__
