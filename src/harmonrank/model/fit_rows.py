"""FitRows: a block of the rows that heads are fitted on, and what is asked of all blocks."""

__all__ = ["FitRows", "RowCounts", "cut_rows", "drawn_from", "drawn_requests", "joined"]

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harmonrank.data.hashing import hashed
from harmonrank.data.rows.blocks import BLOCK_ROWS, Blocks, HeldBlocks, drawn_rows, starts_of
from harmonrank.support.logistic import SMALLEST_SCORE, clipped, score_logit

_DRAW = -1  # Beside the seeds by which requests are set aside and measured.


@dataclass(frozen=True)
class FitRows:
    """Rows as heads see them.

    Attributes:
        first: The place of the first one in the log.
        scores: (rows, M), NaN where one is missing; or their logits.
        codes: (rows, features) of the context.
        labels: (rows, M), from 0 to 1.
        weight: (rows,) or None.
        are_logits: Whether `scores` are logits.
        shares: (rows, M) what each label counts beside the weight of its row: 0 where a row does
            not show it, and more than 1 where it varies less than an event of its chance would;
            None if all count the same.
        request: (rows,) one number per request, where a fit looks at requests.
        age: (rows,) the share of the log that is newer, where a column tells times; NaN where the
            time of a row is unknown.
        user: (rows,) one number per user, where it looks at requests and a column names users.
    """

    first: int
    scores: np.ndarray
    codes: np.ndarray
    labels: np.ndarray
    weight: np.ndarray | None
    are_logits: bool = False
    shares: np.ndarray | None = None
    request: np.ndarray | None = None
    age: np.ndarray | None = None
    user: np.ndarray | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.scores)

    @property
    def units(self) -> np.ndarray | None:
        """What alone is independent: users with all their requests, or else requests."""
        return self.request if self.user is None else self.user

    def logits(self) -> np.ndarray:
        """Return the logits of the scores, (rows, M) float64."""
        return self.scores if self.are_logits else score_logit(self.scores)

    def weights(self) -> np.ndarray:
        """Return what each row counts."""
        return np.ones(self.rows) if self.weight is None else self.weight

    def counts(self) -> np.ndarray | None:
        """Return what each label counts, (rows, M); (rows,) or None where all count the same."""
        if self.shares is None or self.weight is None:
            return self.weight if self.shares is None else self.shares
        counts: np.ndarray = self.weight[:, None] * self.shares
        return counts

    def taken(self, rows: Any) -> "FitRows":
        """Return some rows."""

        def of(array: np.ndarray | None) -> np.ndarray | None:
            return None if array is None else array[rows]

        return replace(
            self,
            scores=self.scores[rows],
            codes=self.codes[rows],
            labels=self.labels[rows],
            weight=of(self.weight),
            shares=of(self.shares),
            request=of(self.request),
            age=of(self.age),
            user=of(self.user),
        )


@dataclass(frozen=True)
class RowCounts:
    """Sums over all rows.

    Attributes:
        rows: How many there are.
        incomplete: How many miss a score.
        mass: Their weight; (M,) where labels count differently.
        positives: (M,) weight of the positive ones.
    """

    rows: int
    incomplete: int
    mass: Any
    positives: np.ndarray

    @classmethod
    def of(cls, blocks: Blocks[FitRows]) -> "RowCounts":
        """Look at all rows once."""
        return cls(*blocks.total(_counts))

    @property
    def prevalence(self) -> np.ndarray:
        """The share of positives of each objective, within (0, 1)."""
        return clipped(self.positives / self.mass, SMALLEST_SCORE)


def _counts(rows: FitRows) -> tuple[int, int, Any, np.ndarray]:
    incomplete = int(np.isnan(rows.scores).any(axis=1).sum())
    if rows.shares is not None:
        each = rows.weights()[:, None] * rows.shares
        return rows.rows, incomplete, each.sum(axis=0), (each * rows.labels).sum(axis=0)
    w = rows.weights()
    return rows.rows, incomplete, float(w.sum()), w @ rows.labels


def cut_rows(
    scores: np.ndarray,
    codes: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray | None = None,
    shares: np.ndarray | None = None,
    request: np.ndarray | None = None,
    *,
    are_logits: bool = False,
    size: int | None = None,
) -> Blocks[FitRows]:
    """Return arrays of all rows in blocks, none of which is copied."""
    size = size or BLOCK_ROWS

    def block(first: int) -> FitRows:
        part = slice(first, first + size)
        w, each, known = (
            None if array is None else array[part] for array in (weight, shares, request)
        )
        return FitRows(first, scores[part], codes[part], labels[part], w, are_logits, each, known)

    return HeldBlocks(map(block, starts_of(len(scores), size)))


def drawn_from(blocks: Blocks[FitRows], rows: int, most: int | None, stride: int = 1) -> FitRows:
    """Return rows of all blocks: so many drawn at random, or every one at equal distances.

    Args:
        blocks: Of so many rows in all.
        rows: How many there are.
        most: How many are drawn; None for equal distances.
        stride: The distance.
    """
    some = drawn_rows(rows, most) if most is not None else None
    return joined(list(blocks.each(_taken, some, stride)))


def drawn_requests(blocks: Blocks[FitRows], rows: int, most: int) -> FitRows:
    """Return about so many rows at most, whole users or requests drawn at random; rows without."""
    if rows <= most or blocks[0].units is None:
        return drawn_from(blocks, rows, most)
    counts = list(blocks.each(_count_of_units, most / rows))
    if not most / 2 <= sum(counts) <= 2 * most:  # A few of them have most of the rows.
        return drawn_from(blocks, rows, most)
    return joined(list(blocks.each(_of_units, most / rows)))


def joined(parts: Sequence[FitRows]) -> FitRows:
    """Return the rows of all parts, in order."""
    first = parts[0]
    if len(parts) == 1:
        return first

    def of(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    names = ("scores", "codes", "labels", "weight", "shares", "request", "age", "user")
    return replace(first, **{name: of(name) for name in names})


def _count_of_units(block: FitRows, share: float) -> int:
    assert block.units is not None
    return int((hashed(block.units, _DRAW) < share).sum())


def _of_units(block: FitRows, share: float) -> FitRows:
    assert block.units is not None
    # Each block draws by itself, and so that the parts of a request that it cuts go together.
    return block.taken(hashed(block.units, _DRAW) < share)


def _taken(block: FitRows, some: np.ndarray | None, stride: int) -> FitRows:
    if some is None:
        return block.taken(slice(-block.first % stride, None, stride))
    low, high = np.searchsorted(some, [block.first, block.first + block.rows])
    if high - low == block.rows:
        return block
    return block.taken(some[low:high] - block.first)
