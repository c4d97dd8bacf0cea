"""Blocks: the rows of some users, which is how a log of any size is drawn."""

__all__ = ["Block", "BlockUsers", "LogFile", "blocks", "feedback"]

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from harmonrank_lab.worlds.raw._truth import probability

_ROWS = 1 << 18
"""A block ends with the user who fills it, so that memory does not grow with the log."""


@dataclass(frozen=True)
class LogFile:
    """One of a log's files: its path below the folder, and how many rows each user has in it."""

    path: str
    counts: np.ndarray
    index: int


@dataclass(frozen=True)
class Block:
    """Rows of one file, in its order.

    Attributes:
        frame: The columns of the official file.
        logits: (rows, M) true logits.
        labels: (rows, M) of 0 and 1.
    """

    file: LogFile
    frame: pl.DataFrame
    logits: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class BlockUsers:
    """The user of every row of a block, and the generator to draw the rest with."""

    file: LogFile
    user: np.ndarray
    rng: np.random.Generator


def blocks(file: LogFile, seed: int) -> Iterator[BlockUsers]:
    """Yield the rows of a file user by user; each block has a generator of its own."""
    ends = np.cumsum(file.counts)
    start = number = 0
    while start < len(ends):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _ROWS, side="right")))
        user = np.repeat(np.arange(start, stop), file.counts[start:stop])
        if len(user):
            yield BlockUsers(file, user, np.random.default_rng([seed, 7, file.index, number]))
        start, number = stop, number + 1


def feedback(rng: np.random.Generator, z: np.ndarray, nested: int = 2) -> np.ndarray:
    """Draw labels of true logits; the first `nested` objectives share one draw.

    So a long view is nearly always a click too, and each is as likely as its logit says.
    """
    draw = rng.random(z.shape, dtype=np.float32)
    draw[:, 1:nested] = draw[:, :1]
    return np.asarray(draw < probability(z))
