"""Whole requests of a table in blocks: what is no sum over rows is measured on some of them."""

__all__ = ["SampledLog", "sampled_requests"]

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from harmonrank.data import Log
from harmonrank.data.rows.blocks import drawn_rows
from harmonrank.data.rows.kept_rows import concatenated
from harmonrank.data.rows.log_blocks import LogBlocks
from harmonrank.data.rows.row_choice import hashed
from harmonrank.engine import Engine, in_order
from harmonrank.fusion.quality.measurable import measurable
from harmonrank.support.errors import DataError

SAMPLE_ROWS = 500_000
"""About so many rows of whole requests stand for all, where sums do not do."""


@dataclass(frozen=True)
class SampledLog:
    """Whole requests of a log in blocks.

    Attributes:
        log: Their rows, in order.
        places: (rows,) where in the table they are.
        rows: How many rows the table has.
    """

    log: Log
    places: np.ndarray
    rows: int

    def words(self) -> str:
        """Return what is measured on what, in a sentence."""
        whole = "" if self.log.request is None else " of whole requests"
        if not measurable(self.log.schema):
            return (
                f"Read {self.rows:,} rows in blocks, and measured {self.log.rows:,} of "
                f"them{whole}, drawn at random."
            )
        return (
            f"Read {self.rows:,} rows in blocks: each AUC of the fused score and its interval are "
            f"of all rows; all else is of {self.log.rows:,} rows{whole}, drawn at random."
        )


def sampled_requests(
    blocks: LogBlocks, most: int | None = None, engine: Engine | None = None
) -> SampledLog:
    """Return about so many rows: all rows of requests drawn at random, or rows without requests.

    Args:
        blocks: Where they are.
        most: About how many; `SAMPLE_ROWS` if left out.
        engine: Whose workers read the blocks; this process if left out.
    """
    most = most or SAMPLE_ROWS
    index = drawn_rows(blocks.rows, most) if blocks.schema.request is None else None
    share, firsts = most / blocks.rows, blocks.starts
    found: Iterable[tuple[Log, np.ndarray]]
    if engine is None:
        read = zip(blocks.each(_same), firsts, strict=True)
        found = (_drawn(log, first, index, share) for log, first in read)
    else:
        found = in_order(engine, _drawn_of, list(enumerate(firsts)), blocks, index, share)
    pairs = [(log, places) for log, places in found if len(places)]
    if not pairs:
        raise DataError(
            f"No request was drawn from {blocks.rows:,} rows: they are of very few requests; check "
            "the request column."
        )
    logs = [log for log, _ in pairs]
    joined = concatenated(logs)
    if index is None:  # the same number is the same request in every block
        request = np.concatenate([log.request for log in logs if log.request is not None])
        joined = replace(joined, request=request)
    return SampledLog(joined, np.concatenate([places for _, places in pairs]), blocks.rows)


def _drawn(log: Log, first: int, index: np.ndarray | None, share: float) -> tuple[Log, np.ndarray]:
    """Return the drawn rows of a block, and their places in the table."""
    if index is None:
        assert log.request is not None
        some = np.flatnonzero(hashed(log.request) < share)
    else:
        low, high = np.searchsorted(index, [first, first + log.rows])
        some = index[low:high] - first
    return log.take(some), first + some


def _drawn_of(
    job: tuple[int, int], blocks: LogBlocks, index: np.ndarray | None, share: float
) -> tuple[Log, np.ndarray]:
    number, first = job
    return _drawn(blocks[number], first, index, share)


def _same(log: Log) -> Log:
    return log
