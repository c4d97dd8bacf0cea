"""Quality of a model on a table that no process holds: blocks are scored, ranges of it sorted.

Three exchanges between the workers: rows to the range of their score, influences to the part of
their request, and rows to the part of their request. What the process that asks receives is a
sample of scores, and sums.
"""

__all__ = ["partitioned_quality"]

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harmonrank.data import Schema
from harmonrank.data.parquet import count_rows
from harmonrank.data.table_files import TableFiles
from harmonrank.data.table_paths import Paths
from harmonrank.data.tables import describe
from harmonrank.engine import Engine
from harmonrank.errors import DataError, UsageError
from harmonrank.evaluation import partitioned_rows as work
from harmonrank.methods import Method, Quality
from harmonrank.methods.packed import pack
from harmonrank.methods.quality import LEVEL
from harmonrank.metrics import (
    Interval,
    WholeTotals,
    interval_of_sums,
    splitters_of,
    whole_totals,
)

_PIECE_ROWS = 1 << 20
# Ranges are as unequal as the sample is coarse; several per worker even that out.
_RANGES_PER_WORKER = 4


def partitioned_quality(
    engine: Engine,
    model: Method,
    source: Paths,
    *,
    weights: Mapping[str, float] | None = None,
    block_rows: int = _PIECE_ROWS,
) -> Quality:
    """Measure how well a model ranks parquet files, as `model.evaluate` does of one in memory.

    AUCs, their intervals and, in a world, the ceiling are exact: the same sums in another order.

    Args:
        engine: Where blocks are scored and ranges sorted.
        model: A fitted method.
        source: Parquet with labels: a file, a folder, a glob or a list of them.
        weights: Other objective weights, for methods that can change them.
        block_rows: Rows that a worker reads at a time.
    """
    schema = model.schema
    schema.require_plain("Measuring on a cluster")
    if schema.position is not None or schema.value:
        raise UsageError(
            "Workers measure AUCs without positions and values per event; leave --engine ray out."
        )
    objective_weights = schema.weights_with(weights)
    measuring = _Measuring(engine, engine.put(pack(model)), source, schema, weights, block_rows)
    blocks, count = measuring.blocks()
    M = len(schema.names)
    ranges, whole = measuring.ranges(blocks)
    missing = [name for name, a in zip(schema.names, whole.area[:M], strict=True) if np.isnan(a)]
    if missing:
        raise DataError(
            f"Objective '{missing[0]}' has one class only in the evaluated rows; expected a "
            "positive and a negative."
        )
    grouped = schema.request is not None
    squares, units = measuring.squares(ranges, whole, objective_weights, grouped)
    reach = interval_of_sums(squares, units, whole.rows, LEVEL)
    area, pi = whole.area[:M], whole.positive[:M] / whole.weight
    used = objective_weights != 0
    total = float(objective_weights[used] @ area[used])
    effective = objective_weights / (model.prevalence * (1 - model.prevalence))

    def named(values: np.ndarray) -> dict[str, float]:
        return dict(zip(schema.names, values.tolist(), strict=True))

    low, high = np.clip(area - reach[:M], 0, 1), np.clip(area + reach[:M], 0, 1)
    exact = whole.area[M:] if len(whole.area) > M else None
    ceiling = None if exact is None else measuring.ceiling(blocks, objective_weights, count)
    return Quality(
        rows=count,
        weights=named(objective_weights),
        auc={
            name: Interval(float(area[m]), float(low[m]), float(high[m]), LEVEL)
            for m, name in enumerate(schema.names)
        },
        auc_sum=Interval(total, total - float(reach[M]), total + float(reach[M]), LEVEL),
        request_auc=named(measuring.within(blocks)) if grouped else None,
        prevalence=named(pi),
        effective_weights=named(effective / np.abs(effective).sum()),
        exact_auc=None if exact is None else named(exact),
        exact_auc_sum=None if exact is None else float(objective_weights @ exact),
        ceiling=ceiling,
    )


@dataclass(frozen=True)
class _Measuring:
    """The exchanges of one measurement."""

    engine: Engine
    packed: Any
    source: Paths
    schema: Schema
    weights: Mapping[str, float] | None
    block_rows: int

    @property
    def _parts(self) -> int:
        return self.engine.workers * _RANGES_PER_WORKER

    def _each(self, function: Callable[..., Any], promises: list[Any], *given: Any) -> list[Any]:
        """Return what a function finds of each promised value."""
        found = [self.engine.call(function, promise, *given) for promise in promises]
        return [self.engine.get(promise) for promise in found]

    def blocks(self) -> tuple[list[Any], int]:
        """Return promises of the scored rows of every block, and how many rows count."""
        files = TableFiles.of(self.source)
        if files.kind != "parquet":
            raise UsageError(
                f"Workers measure parquet files. Got {files.kind} ({describe(self.source)}); "
                "convert it, or leave --engine ray out."
            )
        places: list[tuple[Path, int, int, int]] = []
        first = 0
        for path in files.paths:
            rows = count_rows(path)
            places += [
                (path, low, min(self.block_rows, rows - low), first + low)
                for low in range(0, rows, self.block_rows)
            ]
            first += rows
        name, asked = describe(self.source), self.weights
        blocks = [
            self.engine.call(work.scored, place, self.packed, asked, name) for place in places
        ]
        counts = self._each(work.count, blocks)
        if not sum(counts):
            raise DataError(f"{name} has no rows that count; expected at least one.")
        return blocks, sum(counts)

    def ranges(self, blocks: list[Any], *, true: bool = False) -> tuple[list[Any], WholeTotals]:
        """Send rows to the ranges of their score; return promises of these, and their sums."""
        engine = self.engine
        splitters = splitters_of(np.concatenate(self._each(work.sample, blocks)), self._parts)
        count = len(splitters) + 1
        pieces = [engine.parts(count, work.by_range, block, splitters) for block in blocks]
        ranges = [engine.call(work.join, *column) for column in zip(*pieces, strict=True)]
        return ranges, whole_totals(self._each(work.totals, ranges, true))

    def ceiling(self, blocks: list[Any], weights: np.ndarray, rows: int) -> float:
        """Return the best possible Σ_m w_m AUC_m, as `ceiling_of` does of rows in memory."""
        pi = np.sum(self._each(work.truth_sum, blocks), axis=0) / rows
        variance = pi * (1 - pi)
        effective = np.divide(weights, variance, out=np.zeros_like(weights), where=variance > 0)
        best = [self.engine.call(work.best_rows, block, effective) for block in blocks]
        return float(weights @ self.ranges(best, true=True)[1].area)

    def squares(
        self, ranges: list[Any], whole: WholeTotals, weights: np.ndarray, grouped: bool
    ) -> tuple[np.ndarray, int]:
        """Return Σφ² of each objective and of the sum over sampling units, and their number."""
        engine, given = self.engine, (self.engine.put(whole), weights)
        if not grouped:
            promised = [engine.call(work.own_squares, r, k, *given) for k, r in enumerate(ranges)]
        else:
            parts = self._parts
            pieces = [
                engine.parts(parts, work.influences, rows, place, *given, parts)
                for place, rows in enumerate(ranges)
            ]
            promised = [
                engine.call(work.unit_squares, *column) for column in zip(*pieces, strict=True)
            ]
        found = [engine.get(promise) for promise in promised]
        return np.sum([squares for squares, _ in found], axis=0), sum(units for _, units in found)

    def within(self, blocks: list[Any]) -> np.ndarray:
        """Return the AUC within requests, mean by rows."""
        engine, parts = self.engine, self._parts
        pieces = [engine.parts(parts, work.by_request, block, parts) for block in blocks]
        promised = [engine.call(work.within, *column) for column in zip(*pieces, strict=True)]
        found = [engine.get(promise) for promise in promised]
        total, say = (np.sum(part, axis=0) for part in zip(*found, strict=True))
        return np.where(say > 0, total / np.where(say > 0, say, 1), np.nan)
