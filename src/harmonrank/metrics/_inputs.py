"""Checks of arrays that all metrics share, and the layout of rows request by request.

Functions return views wherever possible: labels of 500,000 rows are not copied to be read.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.support.errors import UsageError, shown
from harmonrank.support.kernel import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
LabelArray = NDArray[Any]


def sorting_order(scores: NDArray[Any]) -> IntArray:
    """Return the positions of the scores in ascending order, tied ones in any order."""
    # Not `ranking.argsort`: that is faster on bell-shaped scores but slower on heavy tails and on
    # many ties, and no metric needs its stability.
    return np.argsort(scores)


def check_scores(scores: ArrayLike, name: str = "scores") -> NDArray[Any]:
    """Return finite scores (n,) as float32 or float64."""
    values = _array(name, scores)
    if values.ndim != 1:
        raise UsageError(
            f"`{name}` must have shape (rows,), one fused score each. Got {values.shape}."
        )
    if values.dtype.kind not in "biuf":
        raise UsageError(f"`{name}` must be numbers. Got dtype {values.dtype}.")
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        bad = np.flatnonzero(~finite)
        raise UsageError(
            f"`{name}` must be finite. Got {bad.size} of {values.size} NaN or infinite, the first "
            f"at row {bad[0]}; drop those rows or repair the model that scored them."
        )
    return values


def check_paired(scores: ArrayLike, minus: ArrayLike) -> None:
    """Refuse two fusions that were not scored on the same rows."""
    if np.shape(scores) != np.shape(minus):
        raise UsageError(
            "`scores` and `minus` must score the same rows. "
            f"Got shapes {np.shape(scores)} and {np.shape(minus)}."
        )


def check_labels(labels: ArrayLike, rows: int) -> LabelArray:
    """Return labels in [0, 1] as (rows, objectives), a view of the given array."""
    values = _array("labels", labels)
    if values.ndim not in (1, 2) or len(values) != rows:
        raise UsageError(
            f"`labels` must have one row per score, ({rows},) or ({rows}, objectives). "
            f"Got {values.shape}."
        )
    if values.dtype.kind not in "biuf":
        raise UsageError(f"`labels` must be numbers in [0, 1]. Got dtype {values.dtype}.")
    if values.dtype == np.bool_:
        values = values.view(np.uint8)
    elif values.dtype == np.float16 or values.dtype.itemsize > 8:
        values = values.astype(np.float64)
    # A NaN fails both comparisons, so it is caught here too.
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        bad = np.argwhere(~((values >= 0) & (values <= 1)))
        first = tuple(int(i) for i in bad[0])
        raise UsageError(
            f"`labels` must lie in [0, 1]. Got {len(bad)} outside, the first at {first}: "
            f"{values[first]}."
        )
    return values[:, None] if values.ndim == 1 else values


def check_inputs(
    scores: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NDArray[Any], LabelArray, FloatArray]:
    """Return scores (n,), labels (n, objectives) and weights (n,), empty if all ones."""
    values = check_scores(scores)
    return values, check_labels(labels, len(values)), check_weights(sample_weight, len(values))


def check_weights(weights: ArrayLike | None, rows: int, name: str = "sample_weight") -> FloatArray:
    """Return weights ≥ 0 as float64, or an empty array that stands for all ones."""
    if weights is None:
        return np.empty(0)
    values = np.ascontiguousarray(_array(name, weights, np.float64))
    if values.shape != (rows,):
        raise UsageError(f"`{name}` must have shape ({rows},). Got {values.shape}.")
    bad = np.flatnonzero(~((values >= 0) & np.isfinite(values)))
    if bad.size:
        raise UsageError(
            f"`{name}` must be finite and not negative. Got {bad.size} others, the first at "
            f"{bad[0]}: {values[bad[0]]}."
        )
    return values


def check_groups(groups: ArrayLike, rows: int) -> tuple[IntArray, int]:
    """Return a code 0..G−1 per row, in the order of the sorted request ids, and G."""
    values = _array("groups", groups)
    if values.shape != (rows,):
        raise UsageError(
            f"`groups` must have one request id per score, ({rows},). Got {values.shape}."
        )
    if values.dtype.kind not in "biuUSOT":
        raise UsageError(f"`groups` must be integers or strings. Got dtype {values.dtype}.")
    if values.dtype.kind in "biu" and rows:
        low = int(values.min())
        if int(values.max()) - low < 4 * rows + 1024:
            return _dense_codes(values.astype(np.int64) - low)
    unique, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.int64, copy=False), len(unique)


def _dense_codes(offsets: IntArray) -> tuple[IntArray, int]:
    """Close the gaps of small non-negative ids without a sort."""
    present = np.bincount(offsets) > 0
    return (np.cumsum(present) - 1)[offsets], int(present.sum())


def _array(name: str, values: ArrayLike, dtype: type | None = None) -> NDArray[Any]:
    """Return values as an array, of their own type if none is asked for."""
    try:
        return np.asarray(values, dtype)
    except (TypeError, ValueError):
        kind = "an array" if dtype is None else "numbers"
        message = f"`{name}` must be {kind}, with an entry per row. Got {shown(values)}."
        raise UsageError(message) from None


def check_level(level: float) -> float:
    """Return a confidence level strictly between 0 and 1."""
    if not 0 < level < 1:
        raise UsageError(f"`level` must lie strictly between 0 and 1, such as 0.95. Got {level}.")
    return float(level)


class RequestLayout(NamedTuple):
    """`order[starts[g]:starts[g + 1]]` are the rows of request g by ascending score."""

    order: IntArray
    starts: IntArray


def request_layout(scores: NDArray[Any], groups: ArrayLike) -> RequestLayout:
    """Sort rows by (request, score): one sort by score, one counting pass by request.

    >>> request_layout(np.array([0.9, 0.1, 0.5]), ["b", "a", "b"])
    RequestLayout(order=array([1, 2, 0]), starts=array([0, 1, 3]))
    """
    codes, count = check_groups(groups, len(scores))
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=count), out=starts[1:])
    return RequestLayout(_by_request(codes, sorting_order(scores), starts), starts)


@kernel
def _by_request(codes: IntArray, by_score: IntArray, starts: IntArray) -> IntArray:
    """Deal the rows to their requests in ascending order, so that each stays sorted."""
    order = np.empty_like(by_score)
    cursor = starts.copy()
    for row in by_score:
        order[cursor[codes[row]]] = row
        cursor[codes[row]] += 1
    return order
