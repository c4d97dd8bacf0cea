"""A frontier, for people."""

from harmonrank.reports.frontier._page import frontier_page
from harmonrank.reports.frontier._text import frontier_table

__all__ = ["frontier_page", "frontier_table"]
