"""Many models on the same data."""

from harmonrank.evaluation.compare import compare
from harmonrank.evaluation.leaderboard import Entry, Leaderboard
from harmonrank.evaluation.simulation import simulate, world_schema

__all__ = [
    "Entry",
    "Leaderboard",
    "compare",
    "simulate",
    "world_schema",
]
