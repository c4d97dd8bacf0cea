"""Stream: the rows to learn from in a shuffled order, a fold left out, few of them in memory."""

__all__ = ["Folds", "RowStream"]

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
import polars as pl
from msgspec import Meta

from harmonrank.data.reading import ahead, count_rows, read_piece
from harmonrank.support import DataError, UsageError
from harmonrank_lab.upstream.embedding import Rows
from harmonrank_lab.upstream.encoder import Encoder
from harmonrank_lab.upstream.logs import ImportedLog
from harmonrank_lab.upstream.side import spread

_SAMPLE_ROWS = 1_000_000

# About the row groups that Polars writes, so that hardly a page is decoded twice.
_GROUP_ROWS = 131_072
_GROUPS = 8
"""How many groups a pool mixes, if it is smaller than eight of that size."""


@dataclass(frozen=True)
class Folds:
    """Assigns every row to one of `count` folds, by its user or by its time.

    Rows are left out as the split left the test rows out: by time where the split went by time,
    so that most users of a left-out row are known, and by user where the split went by user, so
    that none is. Only then do out-of-fold scores follow the density of test scores.

    Attributes:
        column: The user or the time of a row.
        edges: Where a later block of time begins.
    """

    count: Annotated[int, Meta(ge=2, le=400)]
    by: Literal["user", "time"]
    column: str
    edges: tuple[Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)], ...] = ()

    def __post_init__(self) -> None:
        """Refuse stored edges that do not cut time into that many blocks."""
        wanted = self.count - 1 if self.by == "time" else 0
        if len(self.edges) != wanted or tuple(sorted(self.edges)) != self.edges:
            raise DataError(f"`folds` must have {wanted} rising edges, got {self.edges}")

    @classmethod
    def of_log(
        cls, log: ImportedLog, count: int, by: Literal["user", "time"] | None = None
    ) -> Self:
        """Cut the training rows into folds; `by` follows the split if left out."""
        if count < 2:
            raise UsageError(f"`folds` must be at least 2. Got {count}.")
        c = log.columns
        if by == "time" and c.time is None:
            raise UsageError(f"'{log.folder}' has no time column; cut its folds by user.")
        by = by or ("user" if c.time is None else "time")
        if by == "user" or c.time is None:
            return cls(count, "user", c.user)
        every = max(1, log.rows["train"] // _SAMPLE_ROWS)
        batches = log.batches("train", [c.time], rows=1 << 20)
        times = np.concatenate([f[c.time].gather_every(every).to_numpy() for f in batches])
        shares = np.linspace(0, 1, count + 1)[1:-1]
        edges = np.quantile(times, shares, method="nearest")
        return cls(count, "time", c.time, tuple(int(edge) for edge in edges))

    def of(self, frame: pl.DataFrame) -> np.ndarray:
        """Return the fold of each row, from 0.

        >>> Folds(3, "time", "t", (10, 20)).of(pl.DataFrame({"t": [9, 10, 25]})).tolist()
        [0, 1, 2]
        """
        values = frame[self.column].to_numpy()
        if self.by == "time":
            return np.searchsorted(self.edges, values, side="right")
        return (spread(values) % np.uint64(self.count)).astype(np.int64)


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
        pools = self.pools(seed, epoch)[first_pool:]
        read = ahead(lambda pool: Rows.join([self._read(group) for group in pool]), pools)
        for number, rows in enumerate(read, first_pool):
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
