"""Quality in blocks: the exact AUC of more rows than memory holds, the rest on whole requests.

AUCs are those of all rows (`harmonrank.methods.block_areas`). What is no such sum, an interval or
the order within a request, is measured on whole requests drawn at random. The width of an interval
falls with the square root of the rows, and is scaled so.
"""

__all__ = ["BlockQuality", "SampledLog", "exact_quality", "sampled_requests"]

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from harmonrank.data import Log
from harmonrank.data.blocks import drawn_rows
from harmonrank.data.kept_rows import concatenated
from harmonrank.data.log_blocks import LogBlocks
from harmonrank.data.row_choice import hashed
from harmonrank.errors import DataError
from harmonrank.methods.base import Method
from harmonrank.methods.block_areas import areas_of, sorted_rows
from harmonrank.methods.log_facts import require_sums
from harmonrank.methods.quality import Quality
from harmonrank.metrics import Interval

SAMPLE_ROWS = 500_000
"""About so many rows of whole requests stand for all, where sums do not do."""


@dataclass(frozen=True)
class SampledLog:
    """Whole requests of a log in blocks.

    Attributes:
        log: Their rows, in order.
        places: (rows,) where in the table they are.
        rows: How many rows the table has.
    """

    log: Log
    places: np.ndarray
    rows: int

    def words(self) -> str:
        """Return what is measured on what, in a sentence."""
        whole = "" if self.log.request is None else " of whole requests"
        return (
            f"Read {self.rows:,} rows in blocks: each AUC of the fused score is of all rows; "
            f"intervals and all else are of {self.log.rows:,} rows{whole}, drawn at random."
        )


def sampled_requests(blocks: LogBlocks, most: int = SAMPLE_ROWS) -> SampledLog:
    """Return about so many rows: all rows of requests drawn at random, or rows without requests."""
    require_sums(blocks.schema)
    index = drawn_rows(blocks.rows, most) if blocks.schema.request is None else None
    logs, places, first = [], [], 0
    for log in blocks.each(_same):
        if index is None:
            assert log.request is not None
            some = np.flatnonzero(hashed(log.request) < most / blocks.rows)
        else:
            low, high = np.searchsorted(index, [first, first + log.rows])
            some = index[low:high] - first
        if len(some):
            logs.append(log.take(some))
            places.append(first + some)
        first += log.rows
    if not logs:
        raise DataError(
            f"No request was drawn from {blocks.rows:,} rows: they are of very few requests; check "
            "the request column."
        )
    found = concatenated(logs)
    if index is None:  # the same number is the same request in every block
        request = np.concatenate([log.request for log in logs if log.request is not None])
        found = replace(found, request=request)
    return SampledLog(found, np.concatenate(places), blocks.rows)


@dataclass(frozen=True)
class BlockQuality:
    """What is known of all rows that count.

    Attributes:
        rows: How many there are.
        areas: (M,) AUC of each objective.
        prevalence: (M,) share of positives.
    """

    rows: int
    areas: np.ndarray
    prevalence: np.ndarray

    def put_into(self, quality: Quality) -> Quality:
        """Return the quality of a sample, with what is known of all rows in its place."""
        names = list(quality.auc)
        narrower = sqrt(min(1.0, quality.rows / self.rows))
        weights = np.array([quality.weights[name] for name in names])
        areas = dict(zip(names, self.areas.tolist(), strict=True))
        return replace(
            quality,
            rows=self.rows,
            auc={name: _moved(value, areas[name], narrower) for name, value in quality.auc.items()},
            auc_sum=_moved(quality.auc_sum, float(weights @ self.areas), narrower),
            prevalence=dict(zip(names, self.prevalence.tolist(), strict=True)),
        )


def _moved(interval: Interval, estimate: float, narrower: float) -> Interval:
    low = estimate - narrower * (interval.estimate - interval.low)
    high = estimate + narrower * (interval.high - interval.estimate)
    return Interval(estimate, low, high, interval.level)


def exact_quality(
    model: Method,
    blocks: LogBlocks,
    *,
    weights: Mapping[str, float] | None = None,
    value: Mapping[str, float] | None = None,
    on_rows: Any = lambda *_: None,
) -> BlockQuality:
    """Score all rows in blocks, and return the AUC of each objective on all that count."""
    blocks.schema.require_plain("Measuring in blocks, of a table larger than --memory,")
    M, done = len(blocks.schema.names), 0
    sums = np.zeros((2, M))  # mass and weighted positives
    counted = 0

    def scored() -> Any:
        nonlocal done, counted
        for log in blocks.each(_same):
            done += log.rows
            weight = log.sample_weight
            if weight is not None and not weight.all():
                log = log.take(np.flatnonzero(weight))
            if log.rows:
                fused = model.score(log, weights=weights, value=value)
                block = sorted_rows(fused, log.known_labels(), log.sample_weight)
                counted += log.rows
                w = np.ones(log.rows) if not len(block.weight) else block.weight
                sums[0] += w.sum()
                sums[1] += w @ block.labels
                yield block
            on_rows(done, blocks.rows)

    areas = areas_of(scored(), blocks.rows, M, blocks.folder)
    for name, positive, mass in zip(blocks.schema.names, sums[1], sums[0], strict=True):
        if positive in (0, mass):
            raise DataError(
                f"Objective '{name}' has no {'negative' if positive else 'positive'} label among "
                f"the {counted:,} evaluated rows, so its ranking has no meaning there; add rows or "
                "leave it out."
            )
    return BlockQuality(counted, areas, sums[1] / sums[0])


def _same(log: Log) -> Log:
    return log
