"""The history of a stream, for people."""

from harmonrank.reports.stream._history import StreamHistory
from harmonrank.reports.stream._page import stream_page
from harmonrank.reports.stream._tables import stream_table

__all__ = ["StreamHistory", "stream_page", "stream_table"]
