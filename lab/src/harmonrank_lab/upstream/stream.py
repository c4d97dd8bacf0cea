"""Stream: the rows to learn from in a shuffled order, a bounded number of them in memory."""

__all__ = ["RowStream"]

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from harmonrank.data.reading import count_rows, read_piece
from harmonrank_lab.upstream.embedding import Rows
from harmonrank_lab.upstream.encoder import Encoder
from harmonrank_lab.upstream.folds import Folds
from harmonrank_lab.upstream.logs import ImportedLog

# About the row groups that Polars writes, so that hardly a page is decoded twice.
_GROUP_ROWS = 131_072
_GROUPS = 8
"""How many groups a pool mixes, if it is smaller than eight of that size."""


@dataclass(frozen=True)
class _Group:
    """Rows of a file that are read together."""

    path: Path
    first: int
    rows: int


class RowStream:
    """Rows of a log as pools: groups of rows in random order, mixed within a pool.

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
        size = min(_GROUP_ROWS, -(-pool_rows // _GROUPS))
        self._groups = [
            g for part in parts for path in log.parts(part) for g in _groups(path, size)
        ]
        self.rows = sum(group.rows for group in self._groups)
        extra = [] if folds is None else [folds.column]
        self._columns = list(dict.fromkeys([*encoder.reads, *encoder.objectives, *extra]))

    def pools(self, seed: int, epoch: int) -> list[list[_Group]]:
        """Return the groups of each pool of an epoch."""
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
            return Rows.join([self._read(group) for group in pools[number]])

        with ThreadPoolExecutor(1) as thread:
            coming = None
            for number in range(first_pool, len(pools)):
                rows = read(number) if coming is None else coming.result()
                coming = thread.submit(read, number + 1) if number + 1 < len(pools) else None
                rng = np.random.default_rng([seed, epoch, number])
                yield rows.take(rng.permutation(len(rows)))

    def _read(self, group: _Group) -> Rows:
        frame = read_piece(group.path, group.first, group.rows, self._columns)
        if self._folds is not None and self._without is not None:
            frame = frame.filter(self._folds.of(frame) != self._without)
        return self._encoder.rows(frame)


def _groups(path: Path, size: int) -> list[_Group]:
    """Cut a file into groups whose sizes differ by one row at the most."""
    rows = count_rows(path)
    cuts = np.linspace(0, rows, max(round(rows / size), 1) + 1).round().astype(int).tolist()
    return [_Group(path, low, high - low) for low, high in pairwise(cuts)]
