"""Blocks: a log in parts of so many rows each, of which one or two at a time are in memory.

What a fit adds up is a function of a block and of what is known so far, and the results are added
in an order that the numbers of the blocks decide (`SumTree`). So a result depends on the rows and
on where blocks begin, and on nothing else: not on where blocks are kept, how many threads there
are, or who works on which.
"""

__all__ = [
    "BLOCK_ROWS",
    "Blocks",
    "HeldBlocks",
    "SpilledBlocks",
    "drawn_rows",
    "rows_in_block",
    "starts_of",
]

import os
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import numpy as np

from harmonrank.data.rows.sum_tree import PartSum, SumTree
from harmonrank.support.parallel import in_turn

BLOCK_ROWS = 262_144
"""Rows of a block: what is computed of them stays within some 200 MB."""

_SMALLEST = 4096  # Bytes; a smaller array is not worth writing to a file.

Block = TypeVar("Block")
Made = TypeVar("Made")
Result = TypeVar("Result")


def starts_of(rows: int, size: int = BLOCK_ROWS) -> range:
    """Return the first row of each block of a log; one without rows has one block.

    >>> list(starts_of(5, 2))
    [0, 2, 4]
    """
    return range(0, max(rows, 1), size)


def drawn_rows(rows: int, most: int, rng: np.random.Generator | None = None) -> np.ndarray:
    """Return the numbers of rows drawn evenly, ascending; all if there are no more.

    Without a generator they are the same each time: what is measured on them must not change by
    itself.
    """
    if rows <= most:
        return np.arange(rows)
    rng = rng or np.random.default_rng(0)
    return np.sort(rng.choice(rows, most, replace=False, shuffle=False))


def rows_in_block(rows: np.ndarray, first: int, count: int) -> np.ndarray:
    """Return which of some rows of a log, ascending, a block has, by their numbers in the block.

    >>> rows_in_block(np.array([1, 5, 6, 9]), first=4, count=4)
    array([1, 2])
    """
    low, high = np.searchsorted(rows, [first, first + count])
    inside: np.ndarray = rows[low:high] - first
    return inside


class Blocks(ABC, Generic[Block]):
    """The parts of a log in their order, wherever they are kept."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many blocks there are."""

    @abstractmethod
    def __getitem__(self, number: int) -> Block:
        """Return a block."""

    @abstractmethod
    def _kept(self, blocks: Iterable[Made]) -> "Blocks[Made]":
        """Keep other blocks where these are kept."""

    def _visit(self, look: Callable[[int, Block], Result]) -> Iterator[Result]:
        """Yield what is made of every block and its number, in order.

        Two blocks are worked on at once, where there are threads for it.
        """
        return in_turn(lambda number: look(number, self[number]), len(self))

    def each(
        self, work: Callable[..., Result], *given: Any, own: Sequence[Any] | None = None
    ) -> Iterator[Result]:
        """Yield `work(block, *given)` of every block, in order: results are little, as sums are.

        Args:
            work: A function of a module, so that another process can be told to call it.
            given: What all blocks are given, little beside a block.
            own: What each block is given before that, if anything: `work(block, own, *given)`.
        """
        if own is None:
            return self._visit(lambda _, block: work(block, *given))
        return self._visit(lambda number, block: work(block, own[number], *given))

    def made(
        self, work: Callable[..., Made], *given: Any, own: Sequence[Any] | None = None
    ) -> "Blocks[Made]":
        """Return what the same call makes of every block, kept where these are kept."""
        return self._kept(self.each(work, *given, own=own))

    def total(self, work: Callable[..., Any], *given: Any) -> Any:
        """Return the sums over all blocks; `work` gives a tuple of things that can be added."""
        tree = SumTree()
        for number, values in enumerate(self.each(work, *given)):
            tree.add(PartSum(number, number + 1, values))
        return tree.total()


class HeldBlocks(Blocks[Block]):
    """Blocks that are in memory, all of them.

    >>> HeldBlocks([1, 2, 3]).made(lambda block: 10 * block).total(lambda block: (block, 1))
    (60, 3)
    """

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._blocks = list(blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, number: int) -> Block:
        return self._blocks[number]

    def _kept(self, blocks: Iterable[Made]) -> "Blocks[Made]":
        return HeldBlocks(blocks)


@dataclass(frozen=True)
class _Extent:
    """Where in the file an array is."""

    kind: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int


class SpilledBlocks(Blocks[Block]):
    """Blocks, dataclasses of arrays, whose arrays are in a file that nobody else can name.

    Arrays are read back into memory of their own, not mapped: what a block takes is given back
    when it is done with. The file is gone with the blocks, however the process ends.

    Args:
        blocks: Made one after the other, as they are written.
        folder: Where the file is; that of temporary files if left out.
    """

    def __init__(self, blocks: Iterable[Block], folder: Path | None = None) -> None:
        self._folder, self._end = folder, 0
        file, name = tempfile.mkstemp(prefix="harmonrank-", dir=folder)
        Path(name).unlink()
        self._file = file
        weakref.finalize(self, os.close, file)
        self._blocks: list[tuple[Any, dict[str, Any]]] = []
        for block in blocks:
            self.add(block)

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, number: int) -> Block:
        kind, parts = self._blocks[number]
        values = {k: self._read(v) if isinstance(v, _Extent) else v for k, v in parts.items()}
        block: Block = kind(**values)
        return block

    def add(self, block: Block) -> int:
        """Write one more block; return its number."""
        values = {each.name: getattr(block, each.name) for each in fields(cast(Any, block))}
        kept = {name: self._written(value) for name, value in values.items()}
        self._blocks.append((type(block), kept))
        return len(self._blocks) - 1

    def _kept(self, blocks: Iterable[Made]) -> "Blocks[Made]":
        return SpilledBlocks(blocks, self._folder)

    def _written(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray) or value.nbytes < _SMALLEST:
            return value
        array, extent = np.ascontiguousarray(value), _Extent(value.dtype, value.shape, self._end)
        left = _bytes_of(array)
        while left:
            done = os.pwrite(self._file, left, self._end)
            left, self._end = left[done:], self._end + done
        return extent

    def _read(self, extent: _Extent) -> np.ndarray:
        array = np.empty(extent.shape, extent.kind)
        left, offset = _bytes_of(array), extent.offset
        while left:
            done = os.preadv(self._file, [left], offset)
            if not done:
                raise OSError("A temporary file of this process has been cut short.")
            left, offset = left[done:], offset + done
        return array


def _bytes_of(array: np.ndarray) -> memoryview:
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)
