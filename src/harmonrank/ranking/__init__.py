"""Exact ranks, soft ranks with a gradient, and the sort and isotonic solver beneath."""

__all__ = ["SoftRanks", "argsort", "rank", "soft_rank"]

from harmonrank.ranking._rank import rank
from harmonrank.ranking._soft_rank import SoftRanks, soft_rank
from harmonrank.ranking._sort import argsort
