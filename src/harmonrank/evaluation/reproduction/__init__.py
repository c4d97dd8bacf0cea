"""The paper's tables and figures, made again, each claim with its verdict."""

from harmonrank.evaluation.reproduction._data import Data, data_of
from harmonrank.evaluation.reproduction._run import TABLES, reproduce
from harmonrank.evaluation.reproduction._settings import PAPER, QUICK, Settings
from harmonrank.evaluation.reproduction._table import Estimate, Outcome, PaperTable, Row, Verdict

__all__ = [
    "PAPER",
    "QUICK",
    "TABLES",
    "Data",
    "Estimate",
    "Outcome",
    "PaperTable",
    "Row",
    "Settings",
    "Verdict",
    "data_of",
    "reproduce",
]
