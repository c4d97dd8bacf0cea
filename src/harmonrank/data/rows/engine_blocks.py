"""A log in blocks on the workers of an engine.

Each worker has a run of neighbouring blocks. Workers are sent functions, add up what these return
as far as the order of a `SumTree` allows, and return the few sums that are left. So a result is the
same, to the last bit, for any number of workers, and the same as that of the blocks in one process.
A worker that is lost is replaced, and makes its blocks again from the source.
"""

__all__ = ["SENDERS", "EngineBlocks", "with_workers"]

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import count
from typing import Any, TypeVar

from harmonrank.data.rows.blocks import Blocks, HeldBlocks, SpilledBlocks
from harmonrank.data.rows.sum_tree import PartSum, SumTree
from harmonrank.engine import Engine, Resident, current_engine

Block = TypeVar("Block")
Made = TypeVar("Made")
Result = TypeVar("Result")

SENDERS = 32
"""The sums of more workers than these are added up by some of them on the way."""

_AT_ONCE = 16  # Blocks whose results a worker sends together.
_numbers = count()

_Work = Callable[..., Any]
_Stages = tuple[tuple[int, _Work, Sequence[Any] | None, tuple[Any, ...]], ...]
"""What was made of blocks: its own number, the function, what each block and what all are given."""


class EngineBlocks(Blocks[Block]):
    """Blocks on the workers of an engine.

    Args:
        engine: Whose workers.
        source: The blocks, which a worker reads by their numbers: those of files, or in memory.
    """

    def __init__(self, engine: Engine, source: Blocks[Block]) -> None:
        self._engine, self._size = engine, len(source)
        workers, shared = min(engine.workers, self._size), engine.put(source)
        edges = [self._size * k // workers for k in range(workers + 1)]
        ranges = [range(*edges[k : k + 2]) for k in range(workers)]
        self._workers: list[tuple[range, Resident]] = [
            (numbers, engine.keep(_WorkerBlocks, shared, numbers)) for numbers in ranges
        ]
        self._stages: _Stages = ()
        self._made = engine.put(self._stages)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, number: int) -> Block:
        number = range(self._size)[number]
        worker = next(worker for numbers, worker in self._workers if number in numbers)
        promise = worker.call(_work_on, self._made, range(number, number + 1), _itself, None)
        block: Block
        (block,) = self._engine.get(promise)
        return block

    def each(
        self, work: Callable[..., Result], *given: Any, own: Sequence[Any] | None = None
    ) -> Iterator[Result]:
        """Yield what a function returns for every block, in order, as `Blocks.each` does.

        All workers begin at once, so results wait where they are made until it is their turn.
        """
        shared = [self._engine.put(value) for value in given]
        promises = []
        for numbers, worker in self._workers:
            for k in range(0, len(numbers), _AT_ONCE):
                some = numbers[k : k + _AT_ONCE]
                mine = None if own is None else own[some.start : some.stop]
                promises.append(worker.call(_work_on, self._made, some, work, mine, *shared))
        return (result for promise in promises for result in self._engine.get(promise))

    def total(self, work: Callable[..., Any], *given: Any) -> Any:
        """Return the sums over all blocks; each worker adds up those that it has."""
        shared = [self._engine.put(value) for value in given]
        promises = [
            worker.call(_add_up, self._made, numbers, work, *shared)
            for numbers, worker in self._workers
        ]
        while len(promises) > SENDERS:
            promises = [
                self._engine.call(_added, *promises[k : k + SENDERS])
                for k in range(0, len(promises), SENDERS)
            ]
        return SumTree(part for promise in promises for part in self._engine.get(promise)).total()

    def made(
        self, work: Callable[..., Made], *given: Any, own: Sequence[Any] | None = None
    ) -> "EngineBlocks[Made]":
        """Return what a function makes of every block; it stays with the workers."""
        other: EngineBlocks[Made] = EngineBlocks.__new__(EngineBlocks)
        other._engine, other._size, other._workers = self._engine, self._size, self._workers
        other._stages = (*self._stages, (next(_numbers), work, own, given))
        other._made = self._engine.put(other._stages)
        return other

    def _kept(self, blocks: Iterable[Made]) -> "Blocks[Made]":
        return HeldBlocks(blocks)


def with_workers(blocks: Blocks[Block]) -> Blocks[Block]:
    """Return blocks that the workers of the current engine read and keep, if there are any."""
    engine = current_engine()
    return blocks if engine.name == "local" else EngineBlocks(engine, blocks)


class _WorkerBlocks:
    """The blocks of one worker, and what was made of them."""

    def __init__(self, source: Blocks[Any], numbers: range) -> None:
        self._source, self._numbers = source, numbers
        self._known: dict[int, Blocks[Any]] = {}

    def block(self, stages: _Stages, number: int) -> Any:
        """Return what these stages have made of a block; what is not there yet is made now."""
        held = isinstance(self._source, HeldBlocks)
        if not stages:
            block = self._source[number]
            # What an engine hands over is read-only, for which kernels would be compiled again.
            return deepcopy(block) if held else block
        key, work, own, given = stages[-1]
        if key not in self._known:
            results = (
                work(self.block(stages[:-1], n), *(() if own is None else (own[n],)), *given)
                for n in self._numbers
            )
            self._known[key] = HeldBlocks(results) if held else SpilledBlocks(results)
        return self._known[key][self._numbers.index(number)]


def _work_on(
    worker: _WorkerBlocks, stages: _Stages, numbers: range, work: _Work, own: Any, *given: Any
) -> list[Any]:
    mine = [()] * len(numbers) if own is None else [(value,) for value in own]
    pairs = zip(numbers, mine, strict=True)
    return [work(worker.block(stages, number), *each, *given) for number, each in pairs]


def _add_up(
    worker: _WorkerBlocks, stages: _Stages, numbers: range, work: _Work, *given: Any
) -> list[PartSum]:
    tree = SumTree()
    for number in numbers:
        tree.add(PartSum(number, number + 1, work(worker.block(stages, number), *given)))
    return tree.parts


def _added(*sums: list[PartSum]) -> list[PartSum]:
    return SumTree(part for parts in sums for part in parts).parts


def _itself(block: Any) -> Any:
    return block
