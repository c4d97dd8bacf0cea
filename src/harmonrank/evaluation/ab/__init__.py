"""A/B: what the log of an online experiment says, and whether to trust it."""

from harmonrank.evaluation.ab._analyse import CONTROLS, analyse, lift_of
from harmonrank.evaluation.ab._chance import hash_shares
from harmonrank.evaluation.ab._moments import paired_log_ratio
from harmonrank.evaluation.ab._result import AACheck, Analysis, Lift, Mean, SampleRatio

__all__ = [
    "CONTROLS",
    "AACheck",
    "Analysis",
    "Lift",
    "Mean",
    "SampleRatio",
    "analyse",
    "hash_shares",
    "lift_of",
    "paired_log_ratio",
]
