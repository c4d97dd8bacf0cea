"""AUC of rows that do not fit in one process: ranges of the score, each sorted by itself.

Splitters cut the score into ranges, so that rows of one range come before all rows of the next
one, and equal scores are in one range. With W_r the weight of range r and B_r that of the ranges
below it, a row's mid-rank among all rows is its mid-rank within its range plus B_r. So the sums of
`metrics.auc` are those of the ranges, shifted: exact, ties included, however the ranges are cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._auc import mid_ranks, pair_share, rank_sums
from harmonrank.metrics._inputs import (
    FloatArray,
    IntArray,
    LabelArray,
    check_inputs,
    sorting_order,
)
from harmonrank.support.kernel import kernel

BoolArray = NDArray[np.bool_]


def splitters_of(sample: ArrayLike, ranges: int) -> FloatArray:
    """Return ascending scores at which about `ranges` ranges begin, from a sample of scores.

    A better sample makes ranges more equal and changes nothing else. A score that fills a range
    gets a range of its own (see `tied_ranges`).

    >>> splitters_of([3.0, 1.0, 2.0, 4.0], 2)
    array([3.])
    """
    values = np.sort(np.asarray(sample, dtype=np.float64))
    cuts = (np.arange(1, ranges) * len(values)) // max(ranges, 1)
    if not len(values):
        return np.empty(0)
    begins, counts = np.unique(values[cuts], return_counts=True)
    return np.unique(np.concatenate([begins, np.nextafter(begins[counts > 1], np.inf)]))


def tied_ranges(splitters: FloatArray) -> BoolArray:
    """Return which ranges hold a single score; there is one range more than splitters.

    >>> tied_ranges(splitters_of([1.0, 2.0, 2.0, 2.0, 2.0, 3.0], 6))  # below 2, 2, above, 3
    array([False,  True, False, False])
    """
    single = np.nextafter(splitters[:-1], np.inf) == splitters[1:]
    return np.concatenate([[False], single, [False]])[: len(splitters) + 1]


def ranges_of(scores: ArrayLike, splitters: FloatArray) -> IntArray:
    """Return the range of each score, 0 … number of splitters.

    >>> ranges_of([1.0, 3.0, 5.0], np.array([3.0]))
    array([0, 1, 1])
    """
    return np.searchsorted(splitters, np.asarray(scores, np.float64), side="right")


@dataclass(frozen=True)
class RangeTotals:
    """Sums over the rows of one range.

    Attributes:
        rows: How many there are.
        weight: Their weight W_r.
        sums: (M,) Σ w y (R − W_r/2), R the mid-rank within the range.
        positive: (M,) Σ w y.
        negative: (M,) Σ w (1−y).
    """

    rows: int
    weight: float
    sums: FloatArray
    positive: FloatArray
    negative: FloatArray


@dataclass(frozen=True)
class WholeTotals:
    """The totals of all ranges, and the position of each range.

    Attributes:
        rows, weight, positive, negative: Of all ranges.
        area: (M,) AUC; nan where there is no pair.
        below: (ranges,) weight of the ranges below each one, B_r.
        positive_below: (ranges, M) weight of their positives.
    """

    rows: int
    weight: float
    positive: FloatArray
    negative: FloatArray
    area: FloatArray
    below: FloatArray
    positive_below: FloatArray


def range_totals(
    scores: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike | None = None
) -> RangeTotals:
    """Sort the rows of one range and add them up."""
    values, table, weights = check_inputs(scores, labels, sample_weight)
    return totals_of(mid_ranks(values, sorting_order(values), weights), table, weights)


def totals_of(ranks: FloatArray, labels: LabelArray, weights: FloatArray) -> RangeTotals:
    """Add up rows whose `mid_ranks` are known."""
    weight = float(weights.sum()) if weights.size else float(len(ranks))
    return RangeTotals(len(ranks), weight, *rank_sums(ranks, labels, weights))


def whole_totals(ranges: Sequence[RangeTotals], scores: ArrayLike | None = None) -> WholeTotals:
    """Combine ranges, given in their order, into the AUC of all rows.

    Args:
        ranges: Sums of each; rows of a single score may be cut into several.
        scores: (ranges,) ascending; the same number for neighbours whose rows are all tied.

    >>> low = range_totals([0.1, 0.2], [[0], [1]])
    >>> high = range_totals([0.4, 0.4], [[0], [1]])
    >>> whole_totals([low, high]).area  # of 4 pairs 2 are won, one is tied, one lost
    array([0.625])
    """
    weight = np.array([part.weight for part in ranges])
    positives = np.stack([part.positive for part in ranges])
    below, positive_below = (np.cumsum(x, axis=0) - x for x in (weight, positives))
    for same in _tied(scores):
        # Tied ranges all count as in the middle of their scores.
        for under, own in ((below, weight), (positive_below, positives)):
            under[same] = under[same.start] + 0.5 * (own[same].sum(axis=0) - own[same])
    total = weight.sum()
    # A range's own sums are centred at its middle; this is how far it is from that of all rows.
    shift = below + 0.5 * weight - 0.5 * total
    sums = np.stack([part.sums for part in ranges]).sum(axis=0) + shift @ positives
    positive = positives.sum(axis=0)
    negative = np.stack([part.negative for part in ranges]).sum(axis=0)
    return WholeTotals(
        sum(part.rows for part in ranges),
        float(total),
        positive,
        negative,
        pair_share(sums, positive, negative),
        below,
        positive_below,
    )


def _tied(scores: ArrayLike | None) -> list[slice]:
    """Return where neighbours have the same number."""
    if scores is None:
        return []
    _, first, counts = np.unique(np.asarray(scores), return_index=True, return_counts=True)
    return [slice(a, a + n) for a, n in zip(first, counts, strict=True) if n > 1]


def range_influence(
    scores: ArrayLike,
    labels: ArrayLike,
    sample_weight: ArrayLike | None,
    whole: WholeTotals,
    place: int,
) -> FloatArray:
    """Return the influence (n, M) of the rows of one range on the AUCs of all rows.

    It is that of `auc_influence`, whose mid-ranks among all rows, and among all positives, are
    those within the range plus what lies below it.
    """
    values, table, weights = check_inputs(scores, labels, sample_weight)
    order = sorting_order(values)
    ranks = mid_ranks(values, order, weights)
    return influence_within(values, order, ranks, table, weights, whole, place)


def influence_within(
    scores: NDArray[Any],
    order: IntArray,
    ranks: FloatArray,
    labels: LabelArray,
    weights: FloatArray,
    whole: WholeTotals,
    place: int,
) -> FloatArray:
    """Return the same of checked rows whose order and `mid_ranks` are known."""
    mass = float(weights.sum()) if weights.size else float(len(scores))
    among = ranks + (0.5 * mass + whole.below[place])
    # Dividing by nan in place of 0 makes the whole objective nan.
    known = ~np.isnan(whole.area)
    P, N = (np.where(known, part, np.nan) for part in (whole.positive, whole.negative))
    influence: FloatArray = _positive_mid_ranks(scores, order, labels, weights)
    influence += whole.positive_below[place]
    _mix_components(influence, among, labels, weights, whole.area, P, N, float(whole.rows))
    return influence


@kernel
def _positive_mid_ranks(
    scores: NDArray[Any], order: IntArray, labels: LabelArray, weights: FloatArray
) -> FloatArray:
    """Return the weight of positives below each row plus half of those tied with it."""
    n, objectives = labels.shape
    ranks = np.empty((n, objectives))
    below = np.zeros(objectives)
    tied = np.zeros(objectives)
    start = 0
    while start < n:
        tied[:] = 0.0
        stop = start
        while stop < n and scores[order[stop]] == scores[order[start]]:
            weight = 1.0 if weights.size == 0 else weights[order[stop]]
            for m in range(objectives):
                tied[m] += weight * labels[order[stop], m]
            stop += 1
        for i in range(start, stop):
            for m in range(objectives):
                ranks[order[i], m] = below[m] + 0.5 * tied[m]
        for m in range(objectives):
            below[m] += tied[m]
        start = stop
    return ranks


@kernel
def _mix_components(
    influence: FloatArray,
    ranks: FloatArray,
    labels: LabelArray,
    weights: FloatArray,
    area: FloatArray,
    P: FloatArray,
    N: FloatArray,
    rows: float,
) -> None:
    """Turn the mid-ranks Q among positives into φ, in place."""
    n, objectives = labels.shape
    for i in range(n):
        # v W = w n: the prevalence π = P/W leaves this factor and 1/P, 1/N.
        factor = rows if weights.size == 0 else weights[i] * rows
        for m in range(objectives):
            y, Q = labels[i, m], influence[i, m]
            V10 = (ranks[i] - Q) / N[m]
            V01 = (P[m] - Q) / P[m]
            influence[i, m] = factor * (
                y * (V10 - area[m]) / P[m] + (1.0 - y) * (V01 - area[m]) / N[m]
            )
