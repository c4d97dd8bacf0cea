"""Block areas: the exact AUC, and the exact isotonic curve, of more rows than memory holds.

Fused scores and labels of every block are sorted and kept in a file. The range of scores is then
cut so that each part of it has so many rows, and the parts are taken in ascending order: a row's
rank is its rank within the part plus the weight of all parts below (`whole_totals`). So every AUC
is that of all rows, to the last digits of a sum.
"""

__all__ = ["SortedRows", "areas_of", "curve_of", "sorted_rows"]

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

import numpy as np

from harmonrank.data.rows.blocks import SpilledBlocks
from harmonrank.metrics import (
    isotonic_pools,
    range_totals,
    splitters_of,
    tied_ranges,
    whole_totals,
)

_PART_ROWS = 2_000_000
_EDGES_ROWS = 2_000  # Of each block, by which the range of scores is cut.


@dataclass(frozen=True)
class SortedRows:
    """Rows in the order of their fused scores; no weights if all count the same."""

    fused: np.ndarray
    labels: np.ndarray
    weight: np.ndarray


def sorted_rows(fused: np.ndarray, labels: np.ndarray, weight: np.ndarray | None) -> SortedRows:
    """Return the rows of a block in the order of their fused scores."""
    order = np.argsort(fused, kind="stable")
    return SortedRows(fused[order], labels[order], np.empty(0) if weight is None else weight[order])


def areas_of(blocks: Iterable[SortedRows], rows: int) -> np.ndarray:
    """Return the AUC of every objective; nan of one without a positive or without a negative.

    Args:
        blocks: All rows, in blocks of at least one row each.
        rows: About how many there are in all.
    """
    totals, ranges = [], []
    for number, part in _ascending(*_kept(blocks, rows)):
        weight = part.weight if len(part.weight) else None
        totals.append(range_totals(part.fused, part.labels, weight))
        ranges.append(number)
    return whole_totals(totals, ranges).area


def curve_of(blocks: Iterable[SortedRows], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the knots of `fit_isotonic`, of rows in blocks with one label each.

    Pools of a part of the scores are pooled again with those of other parts: what falls within a
    part falls in the whole, so the result is that of all rows at once.
    """
    knots = []
    for _, part in _ascending(*_kept(blocks, rows)):
        weight = part.weight if len(part.weight) else np.ones(len(part.fused))
        knots.append(isotonic_pools(part.fused, part.labels[:, 0], weight))
    x, y, _ = isotonic_pools(*(np.concatenate(column) for column in zip(*knots, strict=True)))
    return x, y


def _kept(blocks: Iterable[SortedRows], rows: int) -> tuple[SpilledBlocks[SortedRows], np.ndarray]:
    """Return the blocks in a file, and where the range of their scores is cut."""
    edges: list[np.ndarray] = []

    def seen() -> Iterator[SortedRows]:
        for block in blocks:
            edges.append(block.fused[:: max(1, len(block.fused) // _EDGES_ROWS)])
            yield block

    kept = SpilledBlocks(seen())
    return kept, splitters_of(np.concatenate(edges), -(-rows // _PART_ROWS))


def _ascending(
    kept: SpilledBlocks[SortedRows], cuts: np.ndarray
) -> Iterator[tuple[int, SortedRows]]:
    """Yield the number of each part and its rows, in the order of scores.

    Of a score that fills a part each block comes by itself: tied rows need no common sort.
    """
    starts = np.array(
        [[0, *np.searchsorted(kept[n].fused, cuts), len(kept[n].fused)] for n in range(len(kept))]
    )
    single = tied_ranges(cuts)
    for number in range(starts.shape[1] - 1):
        ends = starts[:, number], starts[:, number + 1]
        slices = [(n, slice(int(a), int(b))) for n, (a, b) in enumerate(zip(*ends, strict=True))]
        some = (kept.part(n, rows) for n, rows in slices if rows.stop > rows.start)
        for parts in ([part] for part in some) if single[number] else [list(some)]:
            if parts:
                columns = ([getattr(part, f.name) for part in parts] for f in fields(SortedRows))
                yield number, SortedRows(*map(np.concatenate, columns))
