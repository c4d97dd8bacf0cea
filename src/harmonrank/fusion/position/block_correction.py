"""Block correction: places are undone in a table of which one block at a time is in memory."""

__all__ = ["corrected_blocks"]

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from harmonrank.data import Log
from harmonrank.data.rows.blocks import drawn_rows
from harmonrank.data.rows.engine_blocks import EngineBlocks
from harmonrank.data.rows.kept_rows import joined
from harmonrank.data.rows.log_blocks import LogBlocks
from harmonrank.engine import current_engine
from harmonrank.fusion.position.correction import DRAWN, PlaceCorrection, PlaceCounts


def corrected_blocks(blocks: LogBlocks) -> LogBlocks:
    """Return blocks whose sample weights undo their places, as `corrected` does in memory.

    Two looks at the table: feedback is counted by place, then the rows are drawn from which the
    curve and relevance are learned. Each block is corrected when it is read.
    """
    schema = blocks.schema
    if schema.position is None:
        return blocks
    counts = list(_each(blocks, _counts))
    total: PlaceCounts = reduce(add, counts)
    total.require_shown(schema)
    starts = np.cumsum([0, *(part.shown for part in counts[:-1])]).tolist()
    wanted = tuple(drawn_rows(total.shown, most) for most in DRAWN)
    parts = zip(*_each(blocks, _drawn, starts, wanted), strict=True)
    found = PlaceCorrection.of(schema, total, *map(joined, parts))
    return blocks.changed(found, replace(schema, examination=found.curve))


def _each(
    blocks: LogBlocks, work: Any, starts: Sequence[int] | None = None, *given: Any
) -> Iterator[Any]:
    """Yield what a function finds of each block, given the place of its first row if it is told."""
    engine = current_engine()
    if engine.name != "local":
        return EngineBlocks(engine, blocks).each_with(work, starts, *given)
    if starts is None:
        return blocks.each(work, *given)
    firsts = iter(starts)
    return blocks.each(lambda log: work(log, next(firsts), *given))


def _counts(log: Log) -> PlaceCounts:
    return PlaceCounts.of(log)


def _drawn(log: Log, first: int, wanted: tuple[np.ndarray, ...]) -> list[Log]:
    """Return the rows with these places among all that were shown."""
    assert log.position is not None
    shown = np.flatnonzero(log.position >= 0)
    found = []
    for index in wanted:
        low, high = np.searchsorted(index, [first, first + len(shown)])
        found.append(log.take(shown[index[low:high] - first]))
    return found
