"""Tables and what their columns mean; worlds whose best result is known."""

from harmonrank.data.context import UNKNOWN, ContextEncoder
from harmonrank.data.log import Log
from harmonrank.data.reading import read_log
from harmonrank.data.schema import Schema
from harmonrank.data.tables import Source, open_table

__all__ = ["UNKNOWN", "ContextEncoder", "Log", "Schema", "Source", "open_table", "read_log"]
