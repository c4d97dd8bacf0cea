"""EngineBlocks: a log in blocks that the workers of an engine read and keep, each its share.

Groups of neighbouring blocks are dealt out in turn. Workers are sent functions and return sums,
which are taken in the order of the groups: a result is the same, to the last bit, for any number of
workers, and the same as that of the blocks in one process. A worker that is lost is replaced, and
makes its share again from the source.
"""

__all__ = ["EngineBlocks"]

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import count
from typing import Any, TypeVar

from harmonrank.data.blocks import Blocks, HeldBlocks, SpilledBlocks, added, group_size
from harmonrank.engine import Engine, Resident

Block = TypeVar("Block")
Made = TypeVar("Made")
Found = TypeVar("Found")

_WAITING = 4  # Results per worker that wait to be taken, so that none has to wait itself.
_numbers = count()

_Step = tuple[int, Callable[..., Any], Sequence[Any] | None, tuple[Any, ...]]
"""What was made of blocks: its own number, the function, what each block and what all are given."""


class EngineBlocks(Blocks[Block]):
    """Blocks on the workers of an engine.

    Args:
        engine: Whose workers.
        source: The blocks, which a worker reads by their numbers: those of files, or in memory.
    """

    def __init__(self, engine: Engine, source: Blocks[Block]) -> None:
        self._engine, self._size = engine, len(source)
        size = group_size(self._size)
        self._groups = [range(k, min(k + size, self._size)) for k in range(0, self._size, size)]
        workers = min(engine.workers, len(self._groups))
        shared = engine.put(source)
        self._shares: list[Resident] = [
            engine.keep(_Share, shared, [n for group in self._groups[k::workers] for n in group])
            for k in range(workers)
        ]
        self._steps: tuple[_Step, ...] = ()
        self._made = engine.put(self._steps)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, number: int) -> Block:
        block: Block = self._engine.get(self._call(number, _itself, None, []))
        return block

    def each(self, work: Callable[..., Found], *given: Any) -> Iterator[Found]:
        """Yield `work(block, *given)` of every block, in order."""
        return self.each_with(work, None, *given)

    def each_with(
        self, work: Callable[..., Found], own: Sequence[Any] | None, *given: Any
    ) -> Iterator[Found]:
        """Yield `work(block, own[number], *given)` of every block, in order."""
        shared = [self._engine.put(value) for value in given]
        return self._taken(self._call(n, work, own, shared) for n in range(self._size))

    def _call(
        self, number: int, work: Callable[..., Any], own: Sequence[Any] | None, shared: list[Any]
    ) -> Any:
        mine = () if own is None else (own[number],)
        share = self._share_of(number // len(self._groups[0]))
        return share.call(_work_on, self._made, number, work, mine, *shared)

    def _share_of(self, group: int) -> Resident:
        return self._shares[group % len(self._shares)]

    def total(self, work: Callable[..., Any], *given: Any) -> Any:
        """Return the sums over all blocks, of which each worker adds up the groups that it has."""
        shared = [self._engine.put(value) for value in given]
        promises = (
            self._share_of(k).call(_add_up, self._made, group, work, *shared)
            for k, group in enumerate(self._groups)
        )
        return added(self._taken(promises))

    def _taken(self, promises: Iterable[Any]) -> Iterator[Any]:
        """Yield values in order, a few promises per worker ahead."""
        waiting: deque[Any] = deque()
        for promise in promises:
            waiting.append(promise)
            if len(waiting) > _WAITING * len(self._shares):
                yield self._engine.get(waiting.popleft())
        while waiting:
            yield self._engine.get(waiting.popleft())

    def made(self, work: Callable[..., Made], *given: Any) -> "Blocks[Made]":
        """Return what `work(block, *given)` makes of every block; it stays with the workers."""
        return self.made_with(work, None, *given)

    def made_with(
        self, work: Callable[..., Made], own: Sequence[Any] | None, *given: Any
    ) -> "EngineBlocks[Made]":
        """Return what `work(block, own[number], *given)` makes of every block."""
        found: EngineBlocks[Made] = EngineBlocks.__new__(EngineBlocks)
        found._engine, found._size, found._shares = self._engine, self._size, self._shares
        found._groups = self._groups
        found._steps = (*self._steps, (next(_numbers), work, own, given))
        found._made = self._engine.put(found._steps)
        return found


class _Share:
    """The blocks of one worker, and what was made of them."""

    def __init__(self, source: Blocks[Any], numbers: list[int]) -> None:
        self._source, self._numbers = source, numbers
        self.place = {number: k for k, number in enumerate(numbers)}
        self._known: dict[int, Blocks[Any]] = {}

    def blocks(self, steps: tuple[_Step, ...]) -> Blocks[Any]:
        """Return what these steps have made; what is not there yet, or no longer, is made now."""
        if not steps:
            return _Chosen(self._source, self._numbers)
        key, work, own, given = steps[-1]
        if key not in self._known:
            before = self.blocks(steps[:-1])
            results = (
                work(before[k], *(() if own is None else (own[number],)), *given)
                for k, number in enumerate(self._numbers)
            )
            held = isinstance(self._source, HeldBlocks)
            self._known[key] = HeldBlocks(results) if held else SpilledBlocks(results)
        return self._known[key]


class _Chosen(Blocks[Block]):
    """Some blocks of a source."""

    def __init__(self, source: Blocks[Block], numbers: list[int]) -> None:
        self._source, self._numbers = source, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: int) -> Block:
        block = self._source[self._numbers[number]]
        # What an engine hands over is read-only, for which kernels would be compiled once more.
        return deepcopy(block) if isinstance(self._source, HeldBlocks) else block

    def made(self, work: Callable[..., Made], *given: Any) -> Blocks[Made]:
        """Return what is made of them, in memory."""
        return HeldBlocks(self.each(work, *given))


def _work_on(
    share: _Share,
    steps: tuple[_Step, ...],
    number: int,
    work: Callable[..., Any],
    mine: tuple[Any, ...],
    *given: Any,
) -> Any:
    return work(share.blocks(steps)[share.place[number]], *mine, *given)


def _add_up(
    share: _Share, steps: tuple[_Step, ...], group: range, work: Callable[..., Any], *given: Any
) -> tuple[Any, ...]:
    blocks = share.blocks(steps)
    return added(work(blocks[share.place[number]], *given) for number in group)


def _itself(block: Any) -> Any:
    return block
