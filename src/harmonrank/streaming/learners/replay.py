"""Replay: an even sample of all rows that were learned, of a size that does not grow."""

__all__ = ["Replay"]

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from harmonrank.data import Log
from harmonrank.data.rows.kept_rows import concatenated

_MOST_COUNTED = 10**9 - 1  # of numpy's hypergeometric density


@dataclass(frozen=True, eq=False)
class Replay:
    """A uniform sample without replacement of the rows seen so far.

    Attributes:
        most: How many rows are kept.
        seen: How many came in all.
        rows: The sample; all of them while they are few enough.
    """

    most: int
    seen: int = 0
    rows: Log | None = field(default=None, repr=False)

    def with_rows(self, rows: Log, *, seed: int) -> Self:
        """Return the sample after more rows came; the seed and what came before decide it.

        How many of the kept rows are to be new ones is drawn from the hypergeometric distribution,
        as when all rows were there and so many were drawn at once; which ones, evenly.
        """
        if self.rows is None:
            kept = [rows.take(_drawn(rows.rows, self.most, _generator(seed, 0)))]
        else:
            rng = _generator(seed, self.seen)
            total = min(self.most, self.seen + rows.rows)
            new = _share_of_new(rng, rows.rows, self.seen, total)
            old = _drawn(self.rows.rows, total - new, rng)
            kept = [self.rows.take(old), rows.take(_drawn(rows.rows, new, rng))]
        return replace(
            self, seen=self.seen + rows.rows, rows=concatenated([log for log in kept if log.rows])
        )

    def mixed(self, rows: Log, share: float, *, seed: int) -> Log:
        """Return rows with earlier ones before them, which are this share of the whole.

        Fewer, where the sample has not that many.
        """
        wanted = round(rows.rows * share / (1 - share))
        if self.rows is None or not wanted:
            return rows
        earlier = _drawn(self.rows.rows, wanted, _generator(seed, self.seen + 1))
        return concatenated([self.rows.take(earlier), rows])


def _generator(seed: int, seen: int) -> np.random.Generator:
    return np.random.default_rng([seed, seen, 0x4E7])


def _drawn(rows: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return the places of rows drawn evenly, ascending; all if there are no more."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(rng.choice(rows, most, replace=False, shuffle=False))


def _share_of_new(rng: np.random.Generator, new: int, seen: int, kept: int) -> int:
    if new + seen <= _MOST_COUNTED:
        return int(rng.hypergeometric(new, seen, kept))
    # Of so many rows a sample with replacement is the same.
    return min(int(rng.binomial(kept, new / (new + seen))), new)
