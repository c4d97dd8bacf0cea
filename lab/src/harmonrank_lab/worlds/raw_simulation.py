"""Simulated interaction logs as official files, with their truth beside them."""

__all__ = ["TRUTH", "simulate_log"]

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl

from harmonrank.data.reading import ParquetWriter, writing
from harmonrank.metrics import sigmoid
from harmonrank.support import UsageError
from harmonrank.support.storage import new_folder, write_json
from harmonrank_lab.worlds.raw import Block, KuaiRandWorld, TenrecWorld

TRUTH = "truth.json"
"""The file that tells a simulated log from any other folder."""

_BINS, _REACH = 1 << 16, 24.0


def simulate_log(
    world: KuaiRandWorld | TenrecWorld,
    rows: int,
    path: str | Path,
    *,
    seed: int = 0,
    overwrite: bool = False,
    on_rows: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Write a world's log in its official files, block by block.

    Beside them stand truth.parquet, the true probability of every objective in the order of the
    rows of the log files, and truth.json, whose parts are returned: rates, the AUC of the true
    probabilities, and the files in order.
    """
    if rows < 1:
        raise UsageError(f"`rows` must be at least 1. Got {rows}.")
    judge = _Judge(len(world.objectives))
    files: dict[str, int] = {}
    with new_folder(path, holds=TRUTH, overwrite=overwrite) as folder:
        for name, table in world.tables().items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with writing():
                table.write_csv(folder / name)
        with _Writer(folder, world.truth.names) as writer:
            for block in world.blocks(rows, seed):
                writer.add(block)
                judge.add(block)
                name = block.file.path
                files[name] = files.get(name, 0) + block.frame.height
                if on_rows is not None:
                    on_rows(sum(files.values()))
        summary = {"world": world.name, "users": world.users, "items": world.items, "rows": rows}
        summary |= {"seed": seed, "files": files, **judge.summary(world.truth.names)}
        write_json(folder / TRUTH, summary)
    return summary


class _Writer(ExitStack):
    """Appends blocks to their csv files and to truth.parquet."""

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        super().__init__()
        self._folder, self._names = folder, names
        self._streams: dict[str, BinaryIO] = {}
        # Probabilities hardly compress.
        truth = ParquetWriter(folder / "truth.parquet", compression="uncompressed")
        self._truth = self.enter_context(truth)

    def add(self, block: Block) -> None:
        name = block.file.path
        first = name not in self._streams
        if first:
            target = self._folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            self._streams[name] = self.enter_context(target.open("wb"))
        with writing():
            block.frame.write_csv(self._streams[name], include_header=first)
        p = sigmoid(block.logits)
        self._truth.put(pl.DataFrame(p, [f"true_{name}" for name in self._names]))


class _Judge:
    """The AUC of the true probabilities, from counts in narrow bins of the logit.

    A bin is 48/65,536 wide, so ties within one, which count one half, change no digit that is
    shown. Memory does not grow with the rows.
    """

    def __init__(self, M: int) -> None:
        self._truth, self._labels = np.zeros((2, M, _BINS)), np.zeros((2, M, _BINS))

    def add(self, block: Block) -> None:
        bins = (block.logits + _REACH) * (_BINS / (2 * _REACH))
        bins = np.clip(bins, 0, _BINS - 1).astype(np.int64)
        p = sigmoid(block.logits)
        for m, column in enumerate(bins.T):
            shown = np.bincount(column, minlength=_BINS)
            for store, positive in ((self._truth, p[:, m]), (self._labels, block.labels[:, m])):
                count = np.bincount(column, positive, _BINS)
                store[:, m] += count, shown - count

    def summary(self, names: tuple[str, ...]) -> dict[str, Any]:
        def named(values: np.ndarray) -> dict[str, float]:
            return dict(zip(names, values.tolist(), strict=True))

        positives, shown = self._labels[0].sum(1), self._labels.sum((0, 2))
        counts = {name: int(n) for name, n in named(positives).items()}
        areas = {"auc": named(_auc(*self._truth)), "auc_on_labels": named(_auc(*self._labels))}
        return {"rate": named(positives / shown), "positives": counts, **areas}


def _auc(positive: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """Return Σ_bins n⁺ (negatives below + half of those beside) / (n⁺ n⁻), per objective."""
    below = np.cumsum(negative, axis=1) - negative / 2
    with np.errstate(invalid="ignore"):
        share = (positive * below).sum(1) / (positive.sum(1) * negative.sum(1))
    return np.asarray(share)
