"""Bench: our speed beside that of the peers that are installed."""

from harmonrank.evaluation.bench._result import Accuracy, Case, Result
from harmonrank.evaluation.bench._run import (
    PARTS,
    CaseEnded,
    CaseStarted,
    Failure,
    Report,
    machine,
    run,
)
from harmonrank.evaluation.bench._size import FULL, QUICK, Size

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
