"""Many models on the same data."""

from harmonrank.evaluation.compare import MethodEnded, MethodStarted, compare
from harmonrank.evaluation.leaderboard import Entry, Leaderboard
from harmonrank.evaluation.simulation import simulate, world_schema

__all__ = [
    "Entry",
    "Leaderboard",
    "MethodEnded",
    "MethodStarted",
    "compare",
    "simulate",
    "world_schema",
]
