"""The default: coordinates, their density, heads, terms, and the scorer."""

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.model.coordinate import Coordinate
    from harmonrank.model.linear.head_columns import INTERCEPT, SHARED, HeadColumns
    from harmonrank.model.linear.heads import Heads
    from harmonrank.model.linear.heads_fit import fit_heads
    from harmonrank.model.requests.request_fit import fit_request_weights
    from harmonrank.model.terms.residual import Residual

__all__ = [
    "INTERCEPT",
    "SHARED",
    "Coordinate",
    "HeadColumns",
    "Heads",
    "Residual",
    "fit_heads",
    "fit_request_weights",
]

__getattr__, __dir__ = lazy_names(__name__)
