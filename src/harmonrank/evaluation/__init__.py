"""Many models on the same data."""

from harmonrank.evaluation.baseline import Baseline
from harmonrank.evaluation.compare import compare
from harmonrank.evaluation.entry import Entry
from harmonrank.evaluation.leaderboard import Leaderboard
from harmonrank.worlds import simulate, world_schema

__all__ = [
    "Baseline",
    "Entry",
    "Leaderboard",
    "compare",
    "simulate",
    "world_schema",
]
