"""Online: an experiment on a simulated platform, as a closed loop."""

from harmonrank.evaluation.online._plan import ARMS, DELAYS, FULL, QUICK, Plan
from harmonrank.evaluation.online._result import HourEnded, OnlineResult
from harmonrank.evaluation.online._run import run_online

__all__ = ["ARMS", "DELAYS", "FULL", "QUICK", "HourEnded", "OnlineResult", "Plan", "run_online"]
