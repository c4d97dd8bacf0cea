"""The best rows of every request."""

__all__ = ["top_rows"]

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import Source, open_table
from harmonrank.data.clock import table_columns
from harmonrank.data.log import taken
from harmonrank.data.reading.checking import is_lost
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.reading.tables import column_names, is_pandas
from harmonrank.support.errors import UsageError
from harmonrank.support.options import checked_whole

_ADDED = ("fused", "place")


def top_rows(
    table: Source,
    request: str | None,
    k: int,
    needed: Sequence[str],
    score: Callable[[pl.DataFrame], np.ndarray],
) -> Any:
    """Return the best k rows of every request, best first, with their score and place.

    Args:
        table: A pandas table keeps its types and its index; all else becomes a polars table.
        request: The column that tells requests apart.
        k: At most so many of each.
        needed: The columns that a score depends on.
        score: Gives the fused score of rows.
    """
    if request is None:
        raise UsageError("`rank` needs requests; name the request column in the schema.")
    k = checked_whole("k", k, least=1)
    require_polars_threads("`rank`")
    names = column_names(table)
    for added in _ADDED:
        if added in names:
            raise UsageError(f"The table has a column '{added}' already; drop or rename it.")
    if is_pandas(table):
        frame: Any = table
        wanted = [request, *table_columns(needed, names)]
        best = _best(open_table(table, wanted, empty=True), request, k, score)
        chosen = frame.iloc[best["row"].to_numpy()]
        return chosen.assign(**{name: best[name].to_numpy() for name in _ADDED})
    # One reading serves both, so that a lazy table cannot change its order in between.
    rows = open_table(table, [request, *names], empty=True)
    best = _best(rows, request, k, score)
    chosen = taken(pl.DataFrame([rows[name] for name in names]), best["row"].to_numpy())
    return chosen.with_columns(best[name] for name in _ADDED)


def _best(
    rows: pl.DataFrame, request: str, k: int, score: Callable[[pl.DataFrame], np.ndarray]
) -> pl.DataFrame:
    """Return the chosen rows by number, in order, with their score and place."""
    asked = rows[request].alias("request")
    own = pl.DataFrame([asked, pl.Series("fused", score(rows))]).with_row_index("row")
    # A row without a request was shown with no other.
    own = own.with_columns(alone=pl.when(is_lost(asked)).then("row"))
    same = ["request", "alone"]
    best = (
        own.sort("fused", descending=True, maintain_order=True)
        .group_by(same, maintain_order=True)
        .head(k)
        .sort("request", maintain_order=True)
    )
    place = pl.int_range(1, pl.len() + 1).over(same).alias("place")
    return best.select("row", "fused", place)
