"""Quality in blocks: the exact AUC of more rows than memory holds, the rest on whole requests.

Fused scores and labels of every block are sorted and kept in a file. The range of scores is then
cut so that each part of it has so many rows, and the parts are taken in ascending order: a row's
rank is its rank within the part plus the weight of all parts below (`RunningAuc`). So every AUC is
that of all rows, to the last digits of a sum.

What is no such sum, an interval or the order within a request, is measured on whole requests drawn
at random. The width of an interval falls with the square root of the rows, and is scaled so.
"""

__all__ = ["BlockQuality", "SampledLog", "exact_quality", "sampled_requests"]

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from harmonrank.data import Log
from harmonrank.data.blocks import SpilledBlocks, drawn_rows
from harmonrank.data.kept_rows import concatenated
from harmonrank.data.log_blocks import LogBlocks
from harmonrank.data.row_choice import hashed
from harmonrank.errors import DataError
from harmonrank.methods.base import Method
from harmonrank.methods.log_facts import require_sums
from harmonrank.methods.quality import Quality
from harmonrank.metrics import Interval, RunningAuc

SAMPLE_ROWS = 500_000
"""About so many rows of whole requests stand for all, where sums do not do."""

_PART_ROWS = 2_000_000
_EDGES_ROWS = 2_000  # Of each block, by which the range of scores is cut.


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


@dataclass(frozen=True)
class _Scored:
    """Rows in the order of their fused scores."""

    fused: np.ndarray
    labels: np.ndarray
    weight: np.ndarray


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
    edges: list[np.ndarray] = []
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
                block = _scored(model.score(log, weights=weights, value=value), log)
                counted += log.rows
                w = np.ones(log.rows) if not len(block.weight) else block.weight
                sums[0] += w.sum()
                sums[1] += w @ block.labels
                edges.append(block.fused[:: max(1, log.rows // _EDGES_ROWS)])
                yield block
            on_rows(done, blocks.rows)

    kept = SpilledBlocks(scored(), blocks.folder)
    for name, positive, mass in zip(blocks.schema.names, sums[1], sums[0], strict=True):
        if positive in (0, mass):
            raise DataError(
                f"Objective '{name}' has no {'negative' if positive else 'positive'} label among "
                f"the {counted:,} evaluated rows, so its ranking has no meaning there; add rows or "
                "leave it out."
            )
    cuts = _cuts(np.concatenate(edges), counted)
    return BlockQuality(counted, _areas(kept, cuts, M), sums[1] / sums[0])


def _scored(fused: np.ndarray, log: Log) -> _Scored:
    order = np.argsort(fused, kind="stable")
    weight = np.empty(0) if log.sample_weight is None else log.sample_weight[order]
    return _Scored(fused[order], log.known_labels()[order], weight)


def _cuts(scores: np.ndarray, rows: int) -> np.ndarray:
    """Return where the range of scores is cut; a score that fills a part is one by itself."""
    parts = -(-rows // _PART_ROWS)
    found = np.quantile(scores, np.arange(1, parts) / parts, method="nearest")
    known, counts = np.unique(found, return_counts=True)
    return np.unique(np.concatenate([known, np.nextafter(known[counts > 1], np.inf)]))


def _areas(kept: SpilledBlocks[_Scored], cuts: np.ndarray, M: int) -> np.ndarray:
    """Return the AUCs of all rows, part by part in the order of their scores."""
    starts = np.array(
        [[0, *np.searchsorted(kept[n].fused, cuts), len(kept[n].fused)] for n in range(len(kept))]
    )
    running = RunningAuc(M)
    for part in range(starts.shape[1] - 1):
        ends = starts[:, part], starts[:, part + 1]
        slices = [(n, slice(int(a), int(b))) for n, (a, b) in enumerate(zip(*ends, strict=True))]
        some = (kept.part(n, rows) for n, rows in slices if rows.stop > rows.start)
        single = 0 < part < len(cuts) and cuts[part] == np.nextafter(cuts[part - 1], np.inf)
        if single:
            mass, positive = 0.0, np.zeros(M)
            for block in some:
                w = block.weight if len(block.weight) else np.ones(len(block.fused))
                mass, positive = mass + float(w.sum()), positive + w @ block.labels
            running.add_tied(mass, positive)
            continue
        found = list(some)
        if found:
            weight = np.concatenate([block.weight for block in found])
            running.add(
                np.concatenate([block.fused for block in found]),
                np.concatenate([block.labels for block in found]),
                weight if len(weight) else None,
            )
    return running.areas()


def _same(log: Log) -> Log:
    return log
