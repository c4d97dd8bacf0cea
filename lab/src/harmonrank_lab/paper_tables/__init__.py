"""The paper's tables and figures, made again, each claim with its verdict."""

from harmonrank_lab.paper_tables._run import TABLES, reproduce
from harmonrank_lab.paper_tables._settings import PAPER, QUICK, Settings
from harmonrank_lab.paper_tables._table import Estimate, Outcome, PaperTable, Row, Verdict

__all__ = [
    "PAPER",
    "QUICK",
    "TABLES",
    "Estimate",
    "Outcome",
    "PaperTable",
    "Row",
    "Settings",
    "Verdict",
    "reproduce",
]
