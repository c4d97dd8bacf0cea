"""Results that people read."""

from harmonrank.reports.terminal import leaderboard_table, quality_table

__all__ = ["leaderboard_table", "quality_table"]
