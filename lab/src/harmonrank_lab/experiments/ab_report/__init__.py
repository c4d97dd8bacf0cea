"""An experiment's analysis, for people."""

from harmonrank_lab.experiments.ab_report._page import ab_page, ab_table

__all__ = ["ab_page", "ab_table"]
