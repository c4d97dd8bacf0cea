"""Buffer: the batches of an epoch from more rows than memory holds.

The blocks of a log are cut into pieces of neighbouring rows. An epoch takes the pieces in a random
order, as many at a time as a buffer holds, and deals the rows of the buffer into random batches. So
every row is in one batch of an epoch, a batch has rows from all over the log, and who is in it
depends on the rows and the seed alone.
"""

__all__ = ["BufferedRows"]

import hashlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.data.rows import blocks as room
from harmonrank.data.rows.blocks import SpilledBlocks
from harmonrank.model.fit_rows import FitRows
from harmonrank.paper.training.arrays import Arrays
from harmonrank.paper.training.shuffle import random_batches
from harmonrank.paper.training_config import Plan

_PIECE_ROWS = 4_096
_BATCHES = 8  # A buffer holds at least so many, however large they are.
_ORDER = 0xB0F

Piece = tuple[int, int, int]
"""Some rows of a block: its number, and where they begin and end in it."""


class BufferedRows:
    """The rows of a training, of which one buffer at a time is in memory.

    Args:
        blocks: All rows.
        arrays_of: Makes the rows of a buffer ready for a network.
        batch_rows: Rows of a step.
    """

    def __init__(
        self,
        blocks: SpilledBlocks[FitRows],
        arrays_of: Callable[[FitRows], Arrays],
        batch_rows: int,
    ) -> None:
        self._blocks, self._arrays_of = blocks, arrays_of
        sizes = list(blocks.each(_size))
        self._rows = sum(sizes)
        self._pieces: list[Piece] = [
            (number, first, min(first + _PIECE_ROWS, size))
            for number, size in enumerate(sizes)
            for first in range(0, size, _PIECE_ROWS)
        ]
        held = max(room.BUFFER_ROWS, _BATCHES * batch_rows)
        self._fills = min(-(-self._rows // held), len(self._pieces))

    def __len__(self) -> int:
        return self._rows

    def some(self) -> Arrays:
        """Return the first few rows."""
        return self._read(self._pieces[:1])

    def steps(
        self, plan: Plan, seed: int, epoch: int, start: int = 0
    ) -> Iterator[tuple[Arrays | None, NDArray[np.int64]]]:
        """Yield the rows of each step of an epoch, with those of the buffer when it is filled.

        Args:
            plan: How many steps an epoch has, in how many passes over the rows.
            seed: Decides the order of rows.
            epoch: Likewise.
            start: The first step that is asked for; a training may go on within an epoch.
        """
        each, done = plan.steps // plan.passes, 0
        for again in range(plan.passes):
            fills = self._order([seed, epoch, again, _ORDER])
            sizes = [sum(end - first for _, first, end in fill) for fill in fills]
            edges = np.rint(np.cumsum([0, *sizes]) * (each / self._rows)).astype(int).tolist()
            for number, (fill, steps) in enumerate(zip(fills, _lengths(edges), strict=True)):
                begun = max(start - done, 0)
                done += steps
                if begun < steps:
                    batches = random_batches(sizes[number], steps, [seed, epoch, again, number])
                    fresh: Arrays | None = self._read(fill)
                    for index in batches[begun:]:
                        yield fresh, index
                        fresh = None

    def _order(self, seed: list[int]) -> list[list[Piece]]:
        """Return the pieces of each buffer of a pass; those of one in the order of the file."""
        shuffled = np.random.default_rng(seed).permutation(len(self._pieces))
        parts = np.array_split(shuffled, self._fills)
        return [[self._pieces[k] for k in np.sort(part).tolist()] for part in parts]

    def _read(self, pieces: list[Piece]) -> Arrays:
        parts = [self._blocks.part(n, slice(first, end)) for n, first, end in pieces]

        def joined(role: str) -> Any:
            found = [getattr(part, role) for part in parts]
            return None if found[0] is None else np.concatenate(found)

        roles = (joined(role) for role in ("scores", "codes", "labels", "weight"))
        return self._arrays_of(FitRows(0, *roles))

    def fingerprint(self) -> str:
        """Return a digest of all rows."""
        digest = hashlib.sha256()
        for number in range(len(self._blocks)):
            block = self._blocks[number]
            for array in (block.scores, block.codes, block.labels, block.weight):
                digest.update(b"none" if array is None else np.ascontiguousarray(array).data)
        return digest.hexdigest()


def _size(rows: FitRows) -> int:
    return rows.rows


def _lengths(edges: list[int]) -> list[int]:
    return [b - a for a, b in pairwise(edges)]
