"""Frontier: the trade-offs that one fit can reach, without another fit."""

from harmonrank.evaluation.frontier._floors import Floor
from harmonrank.evaluation.frontier._frontier import Front, Frontier, frontier, frontier_of
from harmonrank.evaluation.frontier._guarded import Guarded, guarded_by
from harmonrank.evaluation.frontier._refit import Refit, refits_of
from harmonrank.evaluation.frontier._sweep import Sweep

__all__ = [
    "Floor",
    "Front",
    "Frontier",
    "Guarded",
    "Refit",
    "Sweep",
    "frontier",
    "frontier_of",
    "guarded_by",
    "refits_of",
]
