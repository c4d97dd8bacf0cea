"""An experiment's analysis, for people."""

from harmonrank.reports.ab._page import ab_page
from harmonrank.reports.ab._text import ab_table

__all__ = ["ab_page", "ab_table"]
