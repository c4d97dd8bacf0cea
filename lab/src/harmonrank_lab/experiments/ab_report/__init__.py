"""An experiment's analysis, for people."""

from harmonrank_lab.experiments.ab_report._page import ab_page
from harmonrank_lab.experiments.ab_report._text import ab_table

__all__ = ["ab_page", "ab_table"]
