"""A frontier, for people."""

from harmonrank.reports.frontier._charts import BEST, REACHED, front_plots
from harmonrank.reports.frontier._page import frontier_page
from harmonrank.reports.frontier._text import floor_table, frontier_table, volume_words

__all__ = [
    "BEST",
    "REACHED",
    "floor_table",
    "front_plots",
    "frontier_page",
    "frontier_table",
    "volume_words",
]
