"""Blocks and engines: a log in blocks on the workers of an engine, and an engine without memory.

Each worker has a run of neighbouring blocks. Workers are sent functions, add up what these return
as far as the order of a `SumTree` allows, and return the few sums that are left. So a result is the
same, to the last bit, for any number of workers, and the same as that of the blocks in one process.
A worker that is lost is replaced, and makes its blocks again from the source.

`SpillingEngine` is this process as an engine, which keeps rows in files and not in memory. What
`parts` returns, dataclasses of arrays with a row for each row, is written to a file that nobody
else can name. What `call` returns is made when it is asked for, and again whenever it is asked for
again: a value that is handed on takes no memory meanwhile.
"""

__all__ = ["SENDERS", "EngineBlocks", "SpillingEngine", "with_workers"]

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from harmonrank.data.rows.blocks import Blocks, HeldBlocks, SpilledBlocks
from harmonrank.data.rows.sum_tree import PartSum, SumTree
from harmonrank.engine import Engine, LocalEngine, Resident, current_engine

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


@dataclass(frozen=True)
class _Later:
    """A call that is made when its value is needed."""

    function: Callable[..., Any]
    given: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Written:
    """Some rows of what is in a file; the file is gone with the last of these."""

    file: SpilledBlocks[Any]
    number: int
    first: int
    end: int


class SpillingEngine(LocalEngine):
    """One worker, this process, for tables larger than memory.

    Args:
        folder: Where files are; that of temporary files if left out.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        # One file for all calls of a function, as they are done with together.
        self._files: WeakValueDictionary[str, SpilledBlocks[Any]] = WeakValueDictionary()

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return a promise of `function(*given)`, which is called when its value is needed."""
        return _Later(function, given)

    def parts(self, count: int, function: Callable[..., Any], *given: Any) -> list[Any]:
        """Call the function now, and write its values to a file."""
        values = super().parts(count, function, *map(self.get, given))
        file = self._files.get(function.__name__) or SpilledBlocks[Any]([], self._folder)
        self._files[function.__name__] = file
        number = file.add(_joined_rows(values))
        ends = np.cumsum([0, *map(_row_count, values)]).tolist()
        return [_Written(file, number, *ends[k : k + 2]) for k in range(count)]

    def get(self, promise: Any) -> Any:
        """Return the value of a promise; whatever else is its own value."""
        if isinstance(promise, _Later):
            return promise.function(*map(self.get, promise.given))
        if isinstance(promise, _Written):
            return promise.file.part(promise.number, slice(promise.first, promise.end))
        return promise


def _joined_rows(values: list[Any]) -> Any:
    """Return the rows of all values."""
    kind = type(values[0])
    columns = {f.name: [getattr(value, f.name) for value in values] for f in fields(values[0])}
    return kind(**{k: None if v[0] is None else np.concatenate(v) for k, v in columns.items()})


def _row_count(value: Any) -> int:
    return len(getattr(value, fields(value)[0].name))
