"""Results that people read."""

from harmonrank.reports.facts import Facts, MethodFacts, Run, board_of, collect, run_of
from harmonrank.reports.html import html_page, write_html
from harmonrank.reports.markdown import leaderboard_markdown, quality_markdown
from harmonrank.reports.pictures import write_pictures
from harmonrank.reports.terminal import explanation_table, leaderboard_table, quality_table

__all__ = [
    "Facts",
    "MethodFacts",
    "Run",
    "board_of",
    "collect",
    "explanation_table",
    "html_page",
    "leaderboard_markdown",
    "leaderboard_table",
    "quality_markdown",
    "quality_table",
    "run_of",
    "write_html",
    "write_pictures",
]
