"""The candidates of one request, as a service has them."""

__all__ = ["checked_candidates", "checked_context", "request_log"]

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from harmonrank.data import Log
from harmonrank.data.clock import request_clock
from harmonrank.data.log import taken
from harmonrank.data.scales import bounds_of, to_probabilities
from harmonrank.data.schema import Schema
from harmonrank.support.errors import DataError, shown

_NUMBERS = (float, int, bool, np.float32, np.float64)
_INTEGERS = 1 << 64  # Those of a table have no more bits.


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
    found = np.full(scores.shape, np.nan)
    found[~missing] = rest.astype(np.float64)
    return found


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


def request_log(schema: Schema, scores: np.ndarray, context: Mapping[str, Any]) -> Log:
    """Return the checked candidates of one request as the rows of a log."""
    missing = [name for name in schema.context if name not in context]
    if missing:
        raise DataError(f"The context lacks '{missing[0]}'; set it to None if it is not known.")
    frame = pl.DataFrame({name: [context[name]] for name in schema.context})
    rows = np.zeros(len(scores), np.int64)
    return Log(schema, scores, taken(frame, rows))
