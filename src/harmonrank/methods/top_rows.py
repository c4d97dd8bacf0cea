"""The best rows of every request."""

__all__ = ["top_rows"]

from collections.abc import Callable

import numpy as np
import polars as pl

from harmonrank.data import Source, open_table
from harmonrank.data.forks import require_polars_threads
from harmonrank.data.tables import column_names
from harmonrank.errors import UsageError
from harmonrank.options import checked_whole


def top_rows(
    table: Source, request: str | None, k: int, score: Callable[[pl.DataFrame], np.ndarray]
) -> pl.DataFrame:
    """Return the best k rows of every request, best first, with their score and place."""
    if request is None:
        raise UsageError("`rank` needs requests; name the request column in the schema.")
    k = checked_whole("k", k, least=1)
    require_polars_threads("`rank`")
    names = column_names(table)
    for added in ("fused", "place"):
        if added in names:
            raise UsageError(f"The table has a column '{added}' already; drop or rename it.")
    # One reading serves both, so that a lazy table cannot change its order in between.
    frame = open_table(table, [request, *names])
    best = (
        frame.with_columns(pl.Series("fused", score(frame)))
        .sort("fused", descending=True, maintain_order=True)
        .group_by(request, maintain_order=True)
        .head(k)
        .sort(request, maintain_order=True)
    )
    place = pl.int_range(1, pl.len() + 1).over(request).alias("place")
    return best.select(*names, "fused", place)
