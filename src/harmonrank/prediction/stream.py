"""Stream: the rows to learn from in a shuffled order, a bounded number of them in memory."""

__all__ = ["RowStream"]

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from harmonrank.data.logs import ImportedLog
from harmonrank.prediction.embedding import Rows
from harmonrank.prediction.encoder import Encoder
from harmonrank.prediction.folds import Folds


@dataclass(frozen=True)
class _Group:
    """A row group of a parquet file, which is the least that can be read."""

    path: Path
    number: int
    rows: int


class RowStream:
    """Rows of a log as pools: row groups in random order, mixed within a pool.

    The order depends on the seed and the epoch alone, so that a run which was stopped between two
    pools goes on as if it had not been.

    Attributes:
        rows: How many there are, those of a fold that is left out included.

    Args:
        log: Where the rows are.
        encoder: What they become.
        pool_rows: A pool holds at least this many rows, if there are as many.
        folds: With `without`, rows of that fold are left out.
        without: The fold to leave out.
        parts: Whose rows they are.
    """

    def __init__(
        self,
        log: ImportedLog,
        encoder: Encoder,
        pool_rows: int,
        folds: Folds | None = None,
        without: int | None = None,
        parts: Sequence[str] = ("train",),
    ) -> None:
        self._encoder, self._pool_rows = encoder, pool_rows
        self._folds, self._without = folds, without
        self._groups = [g for part in parts for path in log.parts(part) for g in _groups(path)]
        self.rows = sum(group.rows for group in self._groups)
        extra = [] if folds is None else [folds.column]
        self._columns = list(dict.fromkeys([*encoder.reads, *encoder.objectives, *extra]))

    def pools(self, seed: int, epoch: int) -> list[list[_Group]]:
        """Return the row groups of each pool of an epoch."""
        order = np.random.default_rng([seed, epoch, 0x900]).permutation(len(self._groups))
        pools: list[list[_Group]] = [[]]
        for i in order:
            if sum(g.rows for g in pools[-1]) >= self._pool_rows:
                pools.append([])
            pools[-1].append(self._groups[i])
        return pools

    def epoch(self, seed: int, epoch: int, first_pool: int = 0) -> Iterator[Rows]:
        """Yield shuffled pools, each read while the one before it is used."""
        pools = self.pools(seed, epoch)

        def read(number: int) -> Rows:
            rows = Rows.join([self._read(group) for group in pools[number]])
            rng = np.random.default_rng([seed, epoch, number])
            return rows.take(rng.permutation(len(rows)))

        with ThreadPoolExecutor(1) as thread:
            coming = None
            for number in range(first_pool, len(pools)):
                rows = read(number) if coming is None else coming.result()
                coming = thread.submit(read, number + 1) if number + 1 < len(pools) else None
                yield rows

    def _read(self, group: _Group) -> Rows:
        with pq.ParquetFile(group.path) as file:
            table = file.read_row_group(group.number, columns=self._columns, use_threads=False)
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        if self._folds is not None and self._without is not None:
            frame = frame.filter(self._folds.of(frame) != self._without)
        return self._encoder.rows(frame)


def _groups(path: Path) -> list[_Group]:
    about = pq.read_metadata(path)
    return [_Group(path, i, about.row_group(i).num_rows) for i in range(about.num_row_groups)]
