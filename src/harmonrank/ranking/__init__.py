"""Exact ranks, soft ranks with a gradient, and the sort and isotonic solver beneath."""

__all__ = ["RequestRanks", "SoftRanks", "argsort", "rank", "request_order", "soft_rank"]

from typing import TYPE_CHECKING

from harmonrank.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.ranking._ragged import RequestRanks, request_order
    from harmonrank.ranking._rank import rank
    from harmonrank.ranking._soft_rank import SoftRanks, soft_rank
    from harmonrank.ranking._sort import argsort

# Scoring needs no PyTorch, which takes longer to import than a model to load.
__getattr__ = lazy_names(
    __name__,
    {
        "RequestRanks": "_ragged",
        "SoftRanks": "_soft_rank",
        "argsort": "_sort",
        "rank": "_rank",
        "request_order": "_ragged",
        "soft_rank": "_soft_rank",
    },
)
