"""Pieces: rows that several threads work on side by side, with the same outcome on any number."""

__all__ = ["Pieces"]

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

import torch

from harmonrank.support.threads import thread_count

Given = TypeVar("Given")
Found = TypeVar("Found")


class Pieces:
    """Threads for pieces of work, `thread_count` of them, each of which keeps PyTorch to itself.

    A step has a dozen operations of a millisecond each. PyTorch would divide every one of them
    among its threads, and its threads and those of our own loops would wait for each other; a
    thread that takes a piece of the rows through all of them waits once.

    >>> with Pieces() as pieces:
    ...     pieces.map(lambda row: row * row, [1, 2, 3])
    [1, 4, 9]
    """

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(
            thread_count(), initializer=lambda: torch.set_num_threads(1)
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()

    def map(self, work: Callable[[Given], Found], given: Iterable[Given]) -> list[Found]:
        """Return what the work makes of each, in order."""
        return list(self._pool.map(work, given))
