"""A/B: what the log of an online experiment says, and whether to trust it."""

from harmonrank_lab.experiments.ab._analyse import analyse, lift_of
from harmonrank_lab.experiments.ab._checks import paired_log_ratio
from harmonrank_lab.experiments.ab._result import Analysis, Lift

__all__ = ["Analysis", "Lift", "analyse", "lift_of", "paired_log_ratio"]
