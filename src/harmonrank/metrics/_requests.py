"""Rows laid out request by request, each request in the order of its scores."""

__all__ = ["RequestLayout", "request_layout"]

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._inputs import IntArray, check_groups, sorting_order
from harmonrank.support.kernel import kernel


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
