"""What every room stands on, in rooms of its own that other packages may use too.

`errors` · `events` · `options` · `extras` · `table` · `storage` · `kernel`, `threads`, `parallel`
"""

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.support.errors import DataError, HarmonRankError, UsageError, did_you_mean

_PLACES = {
    "DataError": "errors",
    "HarmonRankError": "errors",
    "UsageError": "errors",
    "did_you_mean": "errors",
}

__all__ = ["DataError", "HarmonRankError", "UsageError", "did_you_mean", "lazy_names"]

__getattr__ = lazy_names(__name__, _PLACES)
