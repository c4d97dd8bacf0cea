"""Quality of a model on a table that no process holds: blocks are scored, ranges of it sorted.

Three exchanges: rows to the range of their score, influences to the part of their request, and rows
to the part of their request. On a cluster they go between workers, and in one process by way of
files (`SpillingEngine`). What the process that asks receives is a sample of scores, and sums.
"""

__all__ = ["partitioned_quality", "put_into"]

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from harmonrank.data import Schema
from harmonrank.data.rows.engine_blocks import SpillingEngine
from harmonrank.data.rows.log_blocks import LogBlocks
from harmonrank.engine import Engine
from harmonrank.evaluation import partitioned_rows as work
from harmonrank.fusion import Method, Quality
from harmonrank.fusion.quality.areas import LEVEL, Areas
from harmonrank.fusion.quality.block_quality import require_measurable
from harmonrank.fusion.saved import pack
from harmonrank.metrics import (
    Interval,
    RequestMoments,
    WholeTotals,
    interval_of_sums,
    splitters_of,
    tied_ranges,
    whole_totals,
)
from harmonrank.support.errors import DataError

# Ranges are as unequal as the sample is coarse; several per worker even that out.
_RANGES_PER_WORKER = 4
_RANGE_NUMBERS = 5_000_000  # Labels of a range, so that its influences take some 300 MB.
_TIED_PIECES = 4  # Pieces of rows that are all tied, of so many blocks each, need no common sort.


def partitioned_quality(
    model: Method,
    blocks: LogBlocks,
    engine: Engine | None = None,
    *,
    weights: Mapping[str, float] | None = None,
    value: Mapping[str, float] | None = None,
    on_rows: Callable[[int, int], None] = lambda *_: None,
) -> Quality:
    """Measure how well a model ranks rows that are in files, as `model.evaluate` does in memory.

    AUCs over all rows and within requests, their intervals and, in a world, the ceiling are exact:
    the same sums in another order.

    Args:
        model: A fitted method.
        blocks: Rows with labels.
        engine: Where blocks are scored and ranges sorted; this process, with files, if left out.
        weights: Other objective weights, for methods that can change them.
        value: What an event of each objective is worth, in place of weights.
        on_rows: Called with the rows scored and the rows in all.
    """
    schema = model.schema
    require_measurable(schema)
    engine = SpillingEngine() if engine is None else engine
    objective_weights = schema.weights_with(weights)
    asked = engine.put(pack(model)), weights, value
    measuring = _Measuring(engine, blocks, engine.put(blocks), schema, asked)
    rows, count = measuring.rows(on_rows)
    ranges, whole = measuring.ranges(rows)
    M = len(schema.names)
    measuring.refuse_one_class(whole, count)
    squares, units = measuring.squares(ranges, whole, objective_weights)
    del ranges  # and with it the file of their rows
    reach = interval_of_sums(squares, units, whole.rows, LEVEL)
    area, pi = whole.area[:M], whole.positive[:M] / whole.weight
    used = objective_weights != 0
    total = float(objective_weights[used] @ area[used])

    def named(values: np.ndarray) -> dict[str, float]:
        return dict(zip(schema.names, values.tolist(), strict=True))

    low, high = np.clip(area - reach[:M], 0, 1), np.clip(area + reach[:M], 0, 1)
    exact = whole.area[M:] if len(whole.area) > M else None
    ceiling = None if exact is None else measuring.ceiling(rows, objective_weights, count)
    within = None if schema.request is None else measuring.within(rows, objective_weights)
    return Quality(
        rows=count,
        weights=named(objective_weights),
        auc={
            name: Interval(float(area[m]), float(low[m]), float(high[m]), LEVEL)
            for m, name in enumerate(schema.names)
        },
        auc_sum=Interval(total, total - float(reach[M]), total + float(reach[M]), LEVEL),
        prevalence=named(pi),
        effective_weights=model.fuser.effective(model.fuser.weights(weights, value)),
        exact_auc=None if exact is None else named(exact),
        exact_auc_sum=None if exact is None else float(objective_weights @ exact),
        ceiling=ceiling,
        requests=within,
        optimises=model.fuser.optimises,
    )


def put_into(exact: Quality, some: Quality) -> Quality:
    """Return the quality of a sample, with what is known of all rows in its place."""
    within = some.requests
    if within is not None and exact.requests is not None:
        within = replace(within, auc=exact.requests.auc, auc_sum=exact.requests.auc_sum)
    whole = {area.name: getattr(exact, area.name) for area in fields(Areas)}
    return replace(some, rows=exact.rows, prevalence=exact.prevalence, requests=within, **whole)


@dataclass(frozen=True)
class _Measuring:
    """The exchanges of one measurement."""

    engine: Engine
    blocks: LogBlocks
    shared: Any
    schema: Schema
    asked: tuple[Any, ...]

    @property
    def _parts(self) -> int:
        few = self.engine.workers * _RANGES_PER_WORKER
        return max(few, -(-self.blocks.rows * len(self.schema.names) // _RANGE_NUMBERS))

    def _each(self, function: Callable[..., Any], promises: list[Any], *given: Any) -> list[Any]:
        """Return what a function finds of each promised value."""
        calls = [self.engine.call(function, promise, *given) for promise in promises]
        return [self.engine.get(call) for call in calls]

    def rows(self, on_rows: Callable[[int, int], None]) -> tuple[list[Any], int]:
        """Return promises of the scored rows of every block, and how many rows count."""
        rows, total = [], self.blocks.rows
        for number, first in enumerate(self.blocks.starts):
            rows += self.engine.parts(1, work.scored, number, self.shared, *self.asked)
            on_rows(min(first + self.blocks.starts.step, total), total)
        count = sum(self._each(work.count, rows))
        if not count:
            raise DataError(f"{self.blocks.name} has no rows that count; expected at least one.")
        return rows, count

    def refuse_one_class(self, whole: WholeTotals, count: int) -> None:
        """Refuse labels that are all alike."""
        for m, name in enumerate(self.schema.names):
            if np.isnan(whole.area[m]):
                raise DataError(
                    f"Objective '{name}' has no {'negative' if whole.positive[m] else 'positive'} "
                    f"label among the {count:,} evaluated rows, so its ranking has no meaning "
                    "there; add rows or leave it out."
                )

    def ranges(self, rows: list[Any], *, true: bool = False) -> tuple[list[Any], WholeTotals]:
        """Send rows to the ranges of their score; return promises of these, and their sums."""
        engine = self.engine
        splitters = splitters_of(np.concatenate(self._each(work.sample, rows)), self._parts)
        count = len(splitters) + 1
        pieces = [engine.parts(count, work.by_range, block, splitters) for block in rows]
        ranges, places = [], []
        for place, tied in enumerate(tied_ranges(splitters)):
            step = _TIED_PIECES if tied else len(pieces)
            for low in range(0, len(pieces), step):
                some = [of_block[place] for of_block in pieces[low : low + step]]
                ranges.append(engine.call(work.join, *some))
                places.append(place)
        return ranges, whole_totals(self._each(work.totals, ranges, true), places)

    def ceiling(self, rows: list[Any], weights: np.ndarray, count: int) -> float:
        """Return the best possible Σ_m w_m AUC_m, as `ceiling_of` does of rows in memory."""
        pi = np.sum(self._each(work.truth_sum, rows), axis=0) / count
        variance = pi * (1 - pi)
        effective = np.divide(weights, variance, out=np.zeros_like(weights), where=variance > 0)
        best = [self.engine.call(work.best_rows, block, effective) for block in rows]
        return float(weights @ self.ranges(best, true=True)[1].area)

    def squares(
        self, ranges: list[Any], whole: WholeTotals, weights: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Return Σφ² of each objective and of the sum over sampling units, and their number."""
        engine, given = self.engine, (self.engine.put(whole), weights)
        if self.schema.request is None and self.schema.user is None:
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
        squares, units = zip(*(engine.get(promise) for promise in promised), strict=True)
        return np.sum(squares, axis=0), sum(units)

    def within(self, rows: list[Any], weights: np.ndarray) -> Areas:
        """Return the AUC within requests, mean by rows, with intervals."""
        engine, parts = self.engine, self._parts
        pieces = [engine.parts(parts, work.by_request, block, parts) for block in rows]
        promised = [engine.call(work.within, *column) for column in zip(*pieces, strict=True)]
        moments: RequestMoments = reduce(add, [engine.get(promise) for promise in promised])
        each, total = moments.intervals(weights, LEVEL)
        return Areas(auc=dict(zip(self.schema.names, each, strict=True)), auc_sum=total)
