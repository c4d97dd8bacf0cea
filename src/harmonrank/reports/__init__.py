"""Results that people read."""

from harmonrank.reports.terminal import explanation_table, leaderboard_table, quality_table

__all__ = ["explanation_table", "leaderboard_table", "quality_table"]
