"""Bench: our speed beside that of the peers that are installed."""

from harmonrank_lab.bench._result import Accuracy, Case, Result
from harmonrank_lab.bench._run import PARTS, CaseEnded, CaseStarted, Failure, Report, machine, run
from harmonrank_lab.bench._size import FULL, QUICK, Size

__all__ = [
    "FULL",
    "PARTS",
    "QUICK",
    "Accuracy",
    "Case",
    "CaseEnded",
    "CaseStarted",
    "Failure",
    "Report",
    "Result",
    "Size",
    "machine",
    "run",
]
