"""Soft ranks with a gradient, and the isotonic solver beneath."""

__all__ = ["RequestRanks", "SoftRanks", "request_order", "soft_rank"]

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.paper.soft_rank._ragged import RequestRanks, request_order
    from harmonrank.paper.soft_rank._soft_rank import SoftRanks, soft_rank

# Scoring needs no PyTorch, which takes longer to import than a model to load.
__getattr__ = lazy_names(
    __name__,
    {
        "RequestRanks": "_ragged",
        "SoftRanks": "_soft_rank",
        "request_order": "_ragged",
        "soft_rank": "_soft_rank",
    },
)
