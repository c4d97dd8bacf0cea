"""Offline: what a model would earn online, estimated from a log before anybody sees it."""

from harmonrank.evaluation.offline._result import OfflineObjective, OfflineResult
from harmonrank.evaluation.offline._run import offline

__all__ = ["OfflineObjective", "OfflineResult", "offline"]
