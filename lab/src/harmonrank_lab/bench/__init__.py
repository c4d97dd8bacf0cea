"""Bench: our speed beside that of the peers that are installed."""

from harmonrank_lab.bench._result import FULL, QUICK, Accuracy, Result
from harmonrank_lab.bench._run import CaseEnded, CaseStarted, Failure, Report, machine, run

__all__ = [
    "FULL",
    "QUICK",
    "Accuracy",
    "CaseEnded",
    "CaseStarted",
    "Failure",
    "Report",
    "Result",
    "machine",
    "run",
]
