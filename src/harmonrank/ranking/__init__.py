"""Exact ranks, soft ranks with a gradient, and the sort and isotonic solver beneath."""

__all__ = ["SoftRanks", "argsort", "rank", "soft_rank"]

from typing import TYPE_CHECKING

from harmonrank.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.ranking._rank import rank
    from harmonrank.ranking._soft_rank import SoftRanks, soft_rank
    from harmonrank.ranking._sort import argsort

# Scoring needs no PyTorch, which takes longer to import than a model to load.
__getattr__ = lazy_names(
    __name__,
    {
        "SoftRanks": "_soft_rank",
        "argsort": "_sort",
        "rank": "_rank",
        "soft_rank": "_soft_rank",
    },
)
