"""A/B: what the log of an online experiment says, and whether to trust it."""

from harmonrank_lab.experiments.ab._analyse import CONTROLS, analyse, lift_of
from harmonrank_lab.experiments.ab._moments import paired_log_ratio
from harmonrank_lab.experiments.ab._result import AACheck, Analysis, Lift, Mean, SampleRatio

__all__ = [
    "CONTROLS",
    "AACheck",
    "Analysis",
    "Lift",
    "Mean",
    "SampleRatio",
    "analyse",
    "lift_of",
    "paired_log_ratio",
]
