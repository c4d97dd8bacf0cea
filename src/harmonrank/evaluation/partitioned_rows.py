"""What workers do of a measurement: score rows, hand them on, and add up those they are handed."""

__all__ = [
    "MeasuredRows",
    "RequestInfluence",
    "best_rows",
    "by_range",
    "by_request",
    "count",
    "influences",
    "join",
    "own_squares",
    "sample",
    "scored",
    "totals",
    "truth_sum",
    "unit_squares",
    "within",
]

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harmonrank.data.rows.log_blocks import LogBlocks
from harmonrank.fusion.saved import PackedModel
from harmonrank.metrics import (
    RangeTotals,
    RequestMoments,
    WholeTotals,
    range_influence,
    range_totals,
    ranges_of,
    request_moments,
)

_SAMPLE_ROWS = 4096


@dataclass(frozen=True)
class MeasuredRows:
    """What is measured of some rows: labels, then true probabilities where they are known."""

    fused: np.ndarray
    labels: np.ndarray
    truth: np.ndarray | None
    weight: np.ndarray | None
    request: np.ndarray | None
    user: np.ndarray | None

    @property
    def units(self) -> np.ndarray:
        """What alone is independent, where it is named: users, or else requests."""
        units = self.request if self.user is None else self.user
        assert units is not None
        return units

    def take(self, index: np.ndarray) -> "MeasuredRows":
        """Return some rows."""
        taken: Any = (None if a is None else a[index] for a in vars(self).values())
        return MeasuredRows(*taken)

    @classmethod
    def join(cls, parts: tuple["MeasuredRows", ...]) -> "MeasuredRows":
        """Return the rows of all parts."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        whole: Any = (None if c[0] is None else np.concatenate(c) for c in columns)
        return cls(*whole)


@dataclass(frozen=True)
class RequestInfluence:
    """Influences on every AUC, and on their weighted sum, summed by user, or else by request."""

    unit: np.ndarray
    sums: np.ndarray


def scored(
    number: int,
    blocks: LogBlocks,
    packed: PackedModel,
    weights: Mapping[str, float] | None,
    value: Mapping[str, float] | None,
) -> list[MeasuredRows]:
    """Read a block and score the rows that count; one part, which is all of it."""
    model, log = packed.model(), blocks[number]
    weight = log.sample_weight
    if weight is not None and not weight.all():
        log = log.take(np.flatnonzero(weight))
    fused = model.score(log, weights=weights, value=value) if log.rows else np.empty(0)
    labels, about = log.known_labels(), (log.sample_weight, log.request, log.user)
    return [MeasuredRows(fused, labels, log.truth, *about)]


def count(rows: MeasuredRows) -> int:
    """Return how many rows there are."""
    return len(rows.fused)


def sample(rows: MeasuredRows) -> np.ndarray:
    """Return some scores, evenly from all."""
    sample: np.ndarray = rows.fused[:: max(1, len(rows.fused) // _SAMPLE_ROWS)].copy()
    return sample


def _split(rows: MeasuredRows, part: np.ndarray, count: int) -> list[MeasuredRows]:
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(1, count))
    return [rows.take(index) for index in np.split(order, ends)]


def by_range(rows: MeasuredRows, splitters: np.ndarray) -> list[MeasuredRows]:
    """Return the rows of each range."""
    return _split(rows, ranges_of(rows.fused, splitters), len(splitters) + 1)


def by_request(rows: MeasuredRows, count: int) -> list[MeasuredRows]:
    """Return rows in so many parts; a user, or else a request, is in one of them."""
    return _split(rows, _part_of(rows.units, count), count)


def _part_of(unit: np.ndarray, count: int) -> np.ndarray:
    # The product spreads units that are numbered with a stride.
    mixed = unit.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    part: np.ndarray = ((mixed >> np.uint64(33)) % np.uint64(count)).astype(np.int64)
    return part


def join(*parts: MeasuredRows) -> MeasuredRows:
    """Return the rows of all parts."""
    return MeasuredRows.join(parts)


def truth_sum(rows: MeasuredRows) -> np.ndarray:
    """Return the sum of true probabilities, which only a world tells."""
    assert rows.truth is not None
    total: np.ndarray = rows.truth.sum(axis=0, dtype=np.float64)
    return total


def best_rows(rows: MeasuredRows, effective: np.ndarray) -> MeasuredRows:
    """Return the rows ranked as well as can be, by effective weights of true probabilities."""
    assert rows.truth is not None
    best = rows.truth.astype(np.float64) @ effective
    return replace(rows, fused=best)


def totals(rows: MeasuredRows, true: bool) -> RangeTotals:
    """Sort the rows of a range and add them up, by true probabilities alone or by labels too."""
    parts = [rows.labels] * (not true) + ([] if rows.truth is None else [rows.truth])
    labels = parts[0] if len(parts) == 1 else np.hstack(parts)
    return range_totals(rows.fused, labels, rows.weight)


def _phi(rows: MeasuredRows, place: int, whole: WholeTotals, weights: np.ndarray) -> np.ndarray:
    """Return the influence of every row on each AUC, and on their weighted sum."""
    M, used = rows.labels.shape[1], weights != 0
    cut = WholeTotals(
        whole.rows, whole.weight, whole.positive[:M], whole.negative[:M], whole.area[:M],
        whole.below, whole.positive_below[:, :M],
    )  # fmt: skip
    phi = range_influence(rows.fused, rows.labels, rows.weight, cut, place)
    return np.column_stack([phi, phi[:, used] @ weights[used]])


def own_squares(
    rows: MeasuredRows, place: int, whole: WholeTotals, weights: np.ndarray
) -> tuple[np.ndarray, int]:
    """Return Σφ² where every row is a sampling unit of its own, and their number."""
    return (_phi(rows, place, whole, weights) ** 2).sum(axis=0), len(rows.fused)


def influences(
    rows: MeasuredRows, place: int, whole: WholeTotals, weights: np.ndarray, count: int
) -> list[RequestInfluence]:
    """Return influences summed by user, or else by request, in parts of these."""
    phi = _phi(rows, place, whole, weights)
    units, sums = _by_group(rows.units, phi)
    part = _part_of(units, count)
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(1, count))
    return [RequestInfluence(units[i], sums[i]) for i in np.split(order, ends)]


def unit_squares(*parts: RequestInfluence) -> tuple[np.ndarray, int]:
    """Return Σφ² over the users, or else requests, of a part, and their number."""
    columns = ([part.unit for part in parts], [part.sums for part in parts])
    _, sums = _by_group(*map(np.concatenate, columns))
    return (sums**2).sum(axis=0), len(sums)


def _by_group(unit: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    unique, codes = np.unique(unit, return_inverse=True)
    sums = [np.bincount(codes, column, len(unique)) for column in values.T]
    return unique, np.stack(sums, axis=1)


def within(*parts: MeasuredRows) -> RequestMoments:
    """Return the sums over the units of a part, of which all rows are there."""
    rows = MeasuredRows.join(parts)
    assert rows.request is not None
    return request_moments(rows.fused, rows.labels, rows.request, rows.weight, rows.user)
