"""The paper's tables made again, as people read them."""

from harmonrank_lab.paper_tables.report._charts import reproduction_page, reproduction_sections
from harmonrank_lab.paper_tables.report._folder import (
    PAGE,
    REPORT,
    RESULTS,
    add_results,
    reproduction_markdown,
    with_head,
    write_reproduction,
)
from harmonrank_lab.paper_tables.report._tables import reproduction_tables

__all__ = [
    "PAGE",
    "REPORT",
    "RESULTS",
    "add_results",
    "reproduction_markdown",
    "reproduction_page",
    "reproduction_sections",
    "reproduction_tables",
    "with_head",
    "write_reproduction",
]
