"""What every room stands on, in rooms of its own that other packages may use too.

`errors` · `events` · `options` · `extras` · `table` · `storage` · `kernel`, `threads`, `parallel`
"""

__all__ = ["DataError", "HarmonRankError", "UsageError", "did_you_mean", "lazy_names"]

from harmonrank.support.errors import DataError, HarmonRankError, UsageError, did_you_mean
from harmonrank.support.lazy import lazy_names
