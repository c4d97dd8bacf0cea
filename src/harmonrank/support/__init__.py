"""What every room stands on.

Names here are for other packages too. `kernel`, `options` and `storage` are rooms of their own.
"""

from typing import TYPE_CHECKING

from harmonrank.support.errors import (
    DataError,
    DependencyError,
    DivergenceError,
    HarmonRankError,
    ModelFileError,
    OutputError,
    SourceError,
    UsageError,
    did_you_mean,
    shown,
)
from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.support.events import BatchEnded, EpochEnded, FitStep, OnEvent, Part, Resumed
    from harmonrank.support.extras import import_extra, is_installed
    from harmonrank.support.logistic import score_logit
    from harmonrank.support.parallel import each_part
    from harmonrank.support.table import Cell, Column, Style, Table, table_of
    from harmonrank.support.threads import limited_threads, thread_count

__all__ = ["DataError", "DependencyError", "DivergenceError", "HarmonRankError", "ModelFileError"]
__all__ += ["OutputError", "SourceError", "UsageError", "did_you_mean", "shown"]
__all__ += ["BatchEnded", "EpochEnded", "FitStep", "OnEvent", "Part", "Resumed"]
__all__ += ["Cell", "Column", "Style", "Table", "table_of"]
__all__ += ["each_part", "import_extra", "is_installed", "lazy_names", "score_logit"]
__all__ += ["limited_threads", "thread_count"]

# An error must not wait for what a table or a kernel imports.
__getattr__ = lazy_names(__name__)
