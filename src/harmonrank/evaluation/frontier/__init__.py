"""Frontier: the trade-offs that one fit can reach, without another fit."""

from harmonrank.evaluation.frontier._frontier import Front, Frontier, frontier_of
from harmonrank.evaluation.frontier._refit import Refit, refits_of
from harmonrank.evaluation.frontier._sweep import Sweep

__all__ = ["Front", "Frontier", "Refit", "Sweep", "frontier_of", "refits_of"]
