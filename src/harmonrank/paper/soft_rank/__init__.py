"""Soft ranks with a gradient, and the isotonic solver beneath."""

__all__ = ["SoftRanks", "options_of", "request_order", "soft_rank"]

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.paper.soft_rank._ranks import SoftRanks, request_order
    from harmonrank.paper.soft_rank._soft_rank import options_of, soft_rank

# Scoring needs no PyTorch, which takes longer to import than a model to load.
__getattr__ = lazy_names(
    __name__,
    {
        "SoftRanks": "_ranks",
        "options_of": "_soft_rank",
        "request_order": "_ranks",
        "soft_rank": "_soft_rank",
    },
)
