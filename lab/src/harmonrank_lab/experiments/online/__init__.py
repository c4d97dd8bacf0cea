"""Online: an experiment on a simulated platform, as a closed loop."""

from harmonrank_lab.experiments.online._config import ARMS, DELAYS, FULL, QUICK, OnlineConfig
from harmonrank_lab.experiments.online._result import HourEnded, OnlineResult
from harmonrank_lab.experiments.online._run import run_online
from harmonrank_lab.experiments.online._shown_log import (
    RANDOMISED,
    candidate_scores,
    shown_log,
    shown_requests,
    true_values,
)

__all__ = [
    "ARMS",
    "DELAYS",
    "FULL",
    "QUICK",
    "RANDOMISED",
    "HourEnded",
    "OnlineConfig",
    "OnlineResult",
    "candidate_scores",
    "run_online",
    "shown_log",
    "shown_requests",
    "true_values",
]
