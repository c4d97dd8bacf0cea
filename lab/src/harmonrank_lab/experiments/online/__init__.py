"""Online: an experiment on a simulated platform, as a closed loop."""

from harmonrank_lab.experiments.online._arm import (
    RANDOMISED,
    candidate_scores,
    shown_log,
    shown_requests,
    true_values,
)
from harmonrank_lab.experiments.online._run import run_online
from harmonrank_lab.experiments.online._traffic import HourEnded, OnlineConfig, OnlineResult

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
