"""Trade-offs between objectives: which results are unbeaten, and how much they cover."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._inputs import FloatArray, IntArray
from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import kernel

_MOST_OBJECTIVES = 5


def pareto_front(points: ArrayLike) -> NDArray[np.bool_]:
    """Return which of the points (n, d), to be maximised, no other point beats.

    A point is beaten by one that is at least as good everywhere and better somewhere. Equal points
    do not beat each other, so copies of an unbeaten point are all kept.

    >>> pareto_front([[1, 3], [2, 2], [1, 2], [3, 1]])
    array([ True,  True, False,  True])
    """
    table = _check_points(points)
    # In this order a point can only be beaten by one before it.
    order = np.lexsort(table.T)[::-1].astype(np.int64)
    return _unbeaten(np.ascontiguousarray(table), order)


def knee(points: ArrayLike) -> int:
    """Return which of the points (n, d), to be maximised, is the knee of the front.

    Each coordinate is taken from 0, its least on the front, to 1, its most. The knee is the
    unbeaten point with the largest sum, farthest beyond the plane through the best of each
    coordinate (Das 1999): leaving it, any gain costs relatively more. The first of equals.

    >>> knee([[0, 10], [8, 9], [10, 0], [5, 5]])
    1
    """
    table = _check_points(points)
    front = np.flatnonzero(pareto_front(table))
    if not len(front):
        raise UsageError("`points` must hold at least one point. Got none.")
    low, high = table[front].min(axis=0), table[front].max(axis=0)
    moved = (table[front] - low) / np.where(high > low, high - low, 1.0)
    return int(front[np.argmax(moved.sum(axis=1))])


def hypervolume(points: ArrayLike, reference: ArrayLike) -> float:
    """Return the volume between the reference and the points, all coordinates to be maximised.

    The volume of ∪_i [reference, point_i], exact: a sweep in two dimensions. Above that, point by
    point, what each adds to those before it (While et al. 2012), up to five dimensions. Points
    that do not exceed the reference in every coordinate cover nothing.

    >>> hypervolume([[1, 3], [2, 2], [3, 1]], reference=[0, 0])
    6.0
    """
    table = _check_points(points)
    corner = np.asarray(reference, dtype=np.float64)
    dimensions = table.shape[1]
    if corner.shape != (dimensions,) or not np.isfinite(corner).all():
        raise UsageError(
            f"`reference` must be one finite number per dimension of `points`, ({dimensions},). "
            f"Got {corner.tolist()}."
        )
    if not 1 <= dimensions <= _MOST_OBJECTIVES:
        raise UsageError(
            f"`points` must have 1 to {_MOST_OBJECTIVES} dimensions. Got {dimensions}."
        )
    above = table - corner
    return _volume(above[(above > 0).all(axis=1)])


def _volume(points: FloatArray) -> float:
    """Return the volume of the union of boxes from the origin to each point."""
    if not len(points):
        return 0.0
    points = points[pareto_front(points)]
    points = points[np.argsort(-points[:, -1], kind="stable")]
    heights = points[:, -1]
    if points.shape[1] == 1:
        return float(heights[0])
    if points.shape[1] == 2:
        # Down the front the first coordinate grows; copies add a slab of no width.
        return float(np.diff(points[:, 0], prepend=0.0) @ heights)
    # A point adds its box without what those before it cover of the box. They are all higher, so
    # that part has the point's own height, and one dimension less is left to measure.
    total = 0.0
    for i, point in enumerate(points):
        covered = np.minimum(points[:i, :-1], point[:-1])
        total += float(heights[i]) * (float(np.prod(point[:-1])) - _volume(covered))
    return total


def _check_points(points: ArrayLike) -> FloatArray:
    table = np.asarray(points, dtype=np.float64)
    if table.ndim != 2:
        raise UsageError(f"`points` must have shape (points, objectives). Got {table.shape}.")
    if not np.isfinite(table).all():
        first = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise UsageError(f"`points` must be finite. Got {table[first].tolist()} at row {first}.")
    return table


@kernel
def _unbeaten(points: FloatArray, order: IntArray) -> NDArray[np.bool_]:
    """Compare each point, best last coordinate first, with the unbeaten ones before it."""
    mask = np.ones(order.size, dtype=np.bool_)
    front = np.empty_like(order)
    size = 0
    for candidate in order:
        for f in front[:size]:
            worse = True
            equal = True
            for d in range(points.shape[1]):
                worse &= points[f, d] >= points[candidate, d]
                equal &= points[f, d] == points[candidate, d]
            if worse and not equal:
                mask[candidate] = False
                break
        if mask[candidate]:
            front[size] = candidate
            size += 1
    return mask
