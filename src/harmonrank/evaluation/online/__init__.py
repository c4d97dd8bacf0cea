"""Online: an experiment on a simulated platform, as a closed loop."""

from harmonrank.evaluation.online._config import ARMS, DELAYS, FULL, QUICK, OnlineConfig
from harmonrank.evaluation.online._result import HourEnded, OnlineResult
from harmonrank.evaluation.online._run import run_online

__all__ = [
    "ARMS",
    "DELAYS",
    "FULL",
    "QUICK",
    "HourEnded",
    "OnlineConfig",
    "OnlineResult",
    "run_online",
]
