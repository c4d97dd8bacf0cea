"""Online: an experiment on a simulated platform, as a closed loop."""

from harmonrank_lab.experiments.online._arm import (
    RANDOMISED,
    candidate_scores,
    shown_log,
    shown_requests,
    true_values,
)
from harmonrank_lab.experiments.online._config import HourEnded, OnlineConfig, OnlineResult
from harmonrank_lab.experiments.online._run import run_online

__all__ = [
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
