"""Whole requests of a table in blocks: what is no sum over rows is measured on some of them."""

__all__ = ["SampledLog", "measurable", "require_measurable", "sampled_requests"]

from dataclasses import dataclass, replace

import numpy as np

from harmonrank.data import Log, Schema
from harmonrank.data.hashing import RequestShare
from harmonrank.data.rows.engine_blocks import with_workers
from harmonrank.data.rows.kept_rows import concatenated
from harmonrank.data.rows.log_blocks import LogBlocks
from harmonrank.support.errors import DataError, UsageError

SAMPLE_ROWS = 500_000
"""About so many rows of whole requests stand for all, where sums do not do."""


def measurable(schema: Schema) -> bool:
    """Return whether rows in blocks are measured: neither positions nor other kinds of labels."""
    return schema.plain and schema.position is None


def require_measurable(schema: Schema) -> None:
    """Refuse what is measured with all rows in memory.

    Raises:
        UsageError: The schema has a position, or a graded or conditional objective.
    """
    schema.require_plain("Measuring in blocks, of a table larger than --memory or on a cluster,")
    if schema.position is not None:
        raise UsageError(
            f"Positions ('{schema.position}') are corrected with all rows in memory where a model "
            "is measured; raise --memory, or leave the position out."
        )


@dataclass(frozen=True)
class SampledLog:
    """Whole requests of a log in blocks.

    Attributes:
        log: Their rows, in order.
        index: (rows,) which rows of the table they are.
        rows: How many rows the table has.
    """

    log: Log
    index: np.ndarray
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


def sampled_requests(blocks: LogBlocks, most: int | None = None) -> SampledLog:
    """Return about so many rows: all rows of requests drawn at random, or rows without requests.

    Args:
        blocks: Where they are; workers read them, if the engine in use has some.
        most: About how many; `SAMPLE_ROWS` if left out.
    """
    # No seed of a fit, whose validation rows are drawn likewise.
    share = RequestShare((most or SAMPLE_ROWS) / blocks.rows, seed=-1)
    drawn = with_workers(blocks).each(_drawn, share, own=blocks.starts)
    pairs = [(log, rows) for log, rows in drawn if len(rows)]
    if not pairs:
        raise DataError(
            f"No request was drawn from {blocks.rows:,} rows: they are of very few requests; check "
            "the request column."
        )
    logs = [log for log, _ in pairs]
    joined = concatenated(logs)
    if blocks.schema.request is not None:  # the same number is the same request in every block
        request = np.concatenate([log.request for log in logs if log.request is not None])
        joined = replace(joined, request=request)
    return SampledLog(joined, np.concatenate([rows for _, rows in pairs]), blocks.rows)


def _drawn(log: Log, first: int, share: RequestShare) -> tuple[Log, np.ndarray]:
    """Return the drawn rows of a block, and their numbers in the table."""
    some = share(log, first)
    return log.take(some), first + some
