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

_PLACES = {
    "INTERCEPT": "linear.head_columns",
    "SHARED": "linear.head_columns",
    "Coordinate": "coordinate",
    "HeadColumns": "linear.head_columns",
    "Heads": "linear.heads",
    "Residual": "terms.residual",
    "fit_heads": "linear.heads_fit",
    "fit_request_weights": "requests.request_fit",
}

__getattr__ = lazy_names(__name__, _PLACES)
