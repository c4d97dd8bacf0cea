"""The candidates of one request, as a service has them, and the best rows of every request."""

__all__ = ["checked_candidates", "checked_context", "top_rows"]

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from harmonrank.data import Source, open_table
from harmonrank.data.clock import request_clock, table_columns
from harmonrank.data.log import taken
from harmonrank.data.reading.checking import is_lost
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.reading.tables import column_names, is_pandas
from harmonrank.data.scales import bounds_of, to_probabilities
from harmonrank.data.schema import Schema
from harmonrank.support.errors import DataError, UsageError, shown
from harmonrank.support.options import checked_whole

_NUMBERS = (float, int, bool, np.float32, np.float64)
_INTEGERS = 1 << 64  # Those of a table have no more bits.

_ADDED = ("fused", "place")


def checked_candidates(scores: ArrayLike, schema: Schema) -> np.ndarray:
    """Return (candidates, objectives) scores as float32 or float64, all in [0, 1] or missing.

    Args:
        scores: As the upstream models gave them; None or NaN where one gave none.
        schema: Names the objectives, and what the numbers of each are.

    >>> schema = Schema({"buy": "p_buy", "like": "p_like"}, scale={"p_like": "percent"})
    >>> checked_candidates([[0.1, 20], [None, 30]], schema)
    array([[0.1, 0.2],
           [nan, 0.3]])
    """
    names = schema.names
    try:
        p = np.asarray(scores)
    except ValueError:  # Rows of different lengths.
        p = np.empty(0, object)
    if p.dtype == object and p.ndim == 2:
        p = _with_nan(p)
    if p.dtype.kind not in "fiub":
        raise DataError(
            f"`scores` must be numbers, (candidates, {len(names)}). Got {type(scores).__name__} of "
            f"{p.dtype}; convert it first."
        )
    if p.ndim != 2 or p.shape[1] != len(names):
        raise DataError(
            f"`scores` must be (candidates, {len(names)}), one column for each of "
            f"{', '.join(names)}. Got {p.shape}."
        )
    p = p if p.dtype == np.float32 else p.astype(np.float64)
    if any(scale != "probability" for scale in schema.scales):
        return _converted(p, schema)
    if not p.size or (p.min() >= 0 and p.max() <= 1):
        return p
    present = p[~np.isnan(p)]
    lost = present.size < p.size and schema.missing == "error"
    if lost or (present.size and not (present.min() >= 0 and present.max() <= 1)):
        raise DataError(
            f"`scores` must lie in [0, 1]. Got {p.min()} to {p.max()}; drop or repair them."
        )
    return p


def _converted(p: np.ndarray, schema: Schema) -> np.ndarray:
    for column, name, scale in zip(p.T, schema.names, schema.scales, strict=True):
        low, high = bounds_of(scale)
        # Not a number is outside of everything, and so is infinity.
        inside = (column >= low) & (column <= high) & np.isfinite(column)
        inside |= np.isnan(column) & (schema.missing == "allow")
        if not inside.all():
            rule = f"lie in [{low:g}, {high:g}]" if np.isfinite(high) else "be finite"
            raise DataError(
                f"The scores of '{name}', of scale {scale}, must {rule}. Got "
                f"{column[~inside][0]}; drop or repair them."
            )
    return to_probabilities(p, schema.scales)


def _with_nan(scores: np.ndarray) -> np.ndarray:
    """Return an array of numbers and None with NaN for each None; as it is if it holds others."""
    missing = np.array([[value is None for value in row] for row in scores], bool)
    missing = missing.reshape(scores.shape)
    rest = scores[~missing]
    if not missing.any() or any(type(x) not in _NUMBERS for x in rest):
        return scores
    filled = np.full(scores.shape, np.nan)
    filled[~missing] = rest.astype(np.float64)
    return filled


def checked_context(context: Mapping[str, Any] | None, columns: Sequence[str]) -> Mapping[str, Any]:
    """Return the context of a request, which may be left out: text, numbers or None.

    >>> checked_context({"hour": np.int64(3)}, ["hour"])
    {'hour': 3}
    """
    if context is None:
        return {}
    if not isinstance(context, Mapping):
        raise DataError(
            "`context` must map each context column to its value, as in {'hour': 3}. "
            f"Got {shown(context)}."
        )
    context = request_clock(context, columns)
    return {name: _value(name, context[name]) for name in columns if name in context}


def _value(name: str, value: Any) -> Any:
    """Return a context value as a table could hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and (value.isascii() or _is_unicode(value)):
        return value
    if value is None or isinstance(value, float):
        return value
    if isinstance(value, int) and abs(value) < _INTEGERS:
        return value
    raise DataError(
        f"Context value '{name}' must be text, a number or None. Got {shown(value)}; convert it "
        "first."
    )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # Half a character, which no table can hold.
        return False
    return True


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
