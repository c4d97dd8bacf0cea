"""The paper's tables made again, as people read them."""

from harmonrank.reports.reproduction._closer import closer_look
from harmonrank.reports.reproduction._folder import (
    PAGE,
    REPORT,
    RESULTS,
    add_results,
    write_reproduction,
)
from harmonrank.reports.reproduction._markdown import reproduction_markdown, with_head
from harmonrank.reports.reproduction._page import reproduction_page, reproduction_sections
from harmonrank.reports.reproduction._terminal import reproduction_tables

__all__ = [
    "PAGE",
    "REPORT",
    "RESULTS",
    "add_results",
    "closer_look",
    "reproduction_markdown",
    "reproduction_page",
    "reproduction_sections",
    "reproduction_tables",
    "with_head",
    "write_reproduction",
]
