"""TableRows: labelled rows of a table in memory, or whole requests drawn from one in blocks."""

__all__ = ["TableRows"]

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Self

import numpy as np

from harmonrank.data import Log, Schema, Source, read_log
from harmonrank.data.reading.table_paths import is_paths, table_paths
from harmonrank.data.rows.log_blocks import FileBlocks, LogBlocks, memory_limit, needed_memory
from harmonrank.engine import Engine, current_engine
from harmonrank.evaluation.entry import Entry
from harmonrank.evaluation.partitioned import partitioned_quality
from harmonrank.fusion import Method
from harmonrank.fusion.position import corrected
from harmonrank.fusion.quality.block_quality import (
    SampledLog,
    measurable,
    require_measurable,
    sampled_requests,
)
from harmonrank.support.errors import UsageError

_WORKER_ROWS = 1 << 20  # Of a block that a worker scores.


@dataclass(frozen=True)
class TableRows:
    """Rows to learn from or to measure on.

    Attributes:
        log: All rows of a table in memory, corrected for their places; else those drawn.
        index: Which rows of the table these are; None if they are all of it.
        sampled: How they were drawn from blocks.
        blocks: The whole table, where `log` has some of its rows.
        engine: Whose workers read the blocks; None for this process.
    """

    log: Log
    index: np.ndarray | None = None
    sampled: SampledLog | None = None
    blocks: LogBlocks | None = None
    engine: Engine | None = None

    @classmethod
    def read(cls, table: Source, schema: Schema, memory: str | None = None) -> Self:
        """Read a table, or draw whole requests from one that memory cannot hold.

        Where an engine with workers is in use, they read the blocks to be measured.
        """
        if is_paths(table) and needed_memory(table, schema) > memory_limit(memory):
            return cls._drawn(FileBlocks(table, schema))
        return cls(corrected(read_log(table, schema)))

    @classmethod
    def by_workers(cls, table: Source, schema: Schema) -> Self:
        """Let the workers of the engine in use read a table, where there are any."""
        require_measurable(schema)
        if not is_paths(table) or (kind := table_paths(table)[0]) != "parquet":
            what = f"A {kind} table" if is_paths(table) else "A table in memory"
            raise UsageError(
                f"{what} does not work with --engine ray; convert it, or leave it out."
            )
        return cls._drawn(FileBlocks(table, schema, size=_WORKER_ROWS), current_engine())

    @classmethod
    def _drawn(cls, blocks: LogBlocks, engine: Engine | None = None) -> Self:
        sampled = sampled_requests(blocks)
        return cls(corrected(sampled.log), sampled.index, sampled, blocks, engine)

    @property
    def table(self) -> Log | LogBlocks:
        """All rows that count, as a fit takes them."""
        return self.log.counted() if self.blocks is None else self.blocks

    def exact(self, entry: Entry, model: Method, *, moved: bool, **asked: Any) -> Entry:
        """Return an entry of drawn rows with the AUCs of all rows in their place.

        Args:
            entry: Of a model on `log`.
            model: The model.
            moved: Whether what was resampled is moved along, and narrowed as the rows are more;
                not where it is compared with a baseline, which is known on the drawn rows alone.
            asked: Weights, values and `on_rows`, as for `partitioned_quality`.
        """
        if self.blocks is None or entry.quality is None or not measurable(self.blocks.schema):
            return entry
        known = partitioned_quality(model, self.blocks, self.engine, **asked)
        quality = replace(known, value=entry.quality.value)
        if not moved or entry.quality.rows == known.rows:
            return replace(entry, quality=quality)
        narrower = sqrt(min(1.0, entry.quality.rows / known.rows))
        centres = {"all rows": quality.areas}
        if quality.requests is not None:
            centres["within requests"] = quality.requests.areas
        drawn = dict(entry.drawn)
        for by in centres.keys() & drawn.keys():
            centre = np.array(list(centres[by].values()))
            drawn[by] = centre + narrower * (drawn[by] - drawn[by][0])
        return replace(entry, quality=quality, drawn=drawn)
