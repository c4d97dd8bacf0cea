"""TrainingFacts: what a fit has to know of all rows before it begins."""

__all__ = ["TrainingFacts"]

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np

from harmonrank.data import ContextEncoder, Log, Schema
from harmonrank.data.context import QUANTILE_ROWS, Counts, added_counts, value_counts
from harmonrank.data.kinds import MOST_LEVELS, LabelLevels
from harmonrank.data.log import require_some_scores, require_two_labels
from harmonrank.data.rows.blocks import drawn_rows, rows_in_block
from harmonrank.data.rows.engine_blocks import with_workers
from harmonrank.data.rows.kept_rows import concatenated
from harmonrank.data.rows.log_blocks import LogBlocks
from harmonrank.data.rows.sum_tree import PartSum, SumTree
from harmonrank.fusion.drift.reference import RECENT_ROWS
from harmonrank.fusion.ordered import ordered_columns
from harmonrank.fusion.quality.position_quality import PlaceSums
from harmonrank.fusion.quality.upstream import MissingScores
from harmonrank.support.errors import DataError, UsageError


@dataclass(frozen=True, eq=False)
class LogSums:
    """Sums over rows that count, by objective where they are arrays.

    Attributes:
        rows: How many count.
        mass: Their weight.
        positive: (M,) weight of the positive ones.
        shown: (M,) how many of them show each objective.
        shown_mass: (M,) weight of these.
        low, high: (M,) the smallest and the largest label of each objective.
        missing: (M,) how many miss each score.
        incomplete: How many miss at least one.
        counts: Of every context column, how many rows have each value.
        places: Sums over rows whose weights undo their places; None if there are no places.
    """

    rows: int
    mass: float
    positive: np.ndarray
    shown: np.ndarray
    shown_mass: np.ndarray
    low: np.ndarray
    high: np.ndarray
    missing: np.ndarray
    incomplete: int
    counts: list[Counts]
    places: PlaceSums | None

    def __add__(self, other: "LogSums") -> "LogSums":
        columns = zip(self.counts, other.counts, strict=True)
        places = [part.places for part in (self, other) if part.places is not None]
        return LogSums(
            self.rows + other.rows,
            self.mass + other.mass,
            self.positive + other.positive,
            self.shown + other.shown,
            self.shown_mass + other.shown_mass,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.missing + other.missing,
            self.incomplete + other.incomplete,
            [added_counts(*pair) for pair in columns],
            reduce(add, places) if places else None,
        )


@dataclass(frozen=True, eq=False)
class TrainingFacts:
    """Sums over the rows that count, and some of these rows.

    Attributes:
        schema: Which column is what.
        first: The place of each block's first row among those that count.
        sums: Over all of them.
        drawn: At most `RECENT_ROWS` rows, drawn at random.
        wider: At most `QUANTILE_ROWS`, likewise, if some context column holds fractions or some
            objective is graded.
        levels: By graded objective, its labels and how many rows have each.
    """

    schema: Schema
    first: tuple[int, ...]
    sums: LogSums
    drawn: Log
    wider: Log
    levels: Mapping[str, LabelLevels] = field(default_factory=dict)

    @classmethod
    def of(cls, blocks: LogBlocks) -> "TrainingFacts":
        """Look at all rows once; twice if some of them do not count.

        Raises:
            DataError: No row counts, or an objective has one class only, or no score.
            UsageError: A graded objective has more different labels than are counted.
        """
        schema = blocks.schema
        wide = bool(schema.graded) or _fractions(blocks)
        parts, drawn, levels = _pass(blocks, blocks.starts, blocks.rows, wide)
        rows = sum(part.rows for part in parts)
        if not rows:
            raise DataError(
                f"All {blocks.rows:,} rows have sample weight 0; expected at least one that counts."
            )
        starts = np.cumsum([0, *(part.rows for part in parts[:-1])]).tolist()
        if rows < blocks.rows:
            parts, drawn, levels = _pass(blocks, starts, rows, wide)
        facts = cls(schema, tuple(starts), reduce(add, parts), *drawn, levels)
        facts._check()
        return facts

    def _check(self) -> None:
        sums = self.sums
        ends = zip(sums.shown.tolist(), sums.low.tolist(), sums.high.tolist(), strict=True)
        require_two_labels(self.schema, sums.rows, list(ends), "training")
        require_some_scores(self.schema, sums.rows, sums.missing, "training")

    @cached_property
    def prevalence(self) -> np.ndarray:
        """The share of positives of each objective, by sample weight, as `Log.prevalence`."""
        sums = self.sums
        share: np.ndarray = sums.positive / (sums.mass if self.schema.plain else sums.shown_mass)
        for name, levels in self.levels.items():
            share[self.schema.names.index(name)] = levels.prevalence()
        return share

    @property
    def shown_share(self) -> np.ndarray:
        """The share of rows that show each objective, by sample weight."""
        share: np.ndarray = self.sums.shown_mass / self.sums.mass
        return share

    @property
    def weight_unit(self) -> float:
        """What a weight is divided by in a fit, as in `Log.with_unit_weights`."""
        mean, places = self.sums.mass / self.sums.rows, self.sums.places
        if places is None or not places.answered[0]:
            return mean
        total, square = places.answered.tolist()
        return float(mean / (total / square))

    def times(self) -> np.ndarray | None:
        """Return the times of the drawn rows, the oldest first; None where none are known."""
        time = self.drawn.time
        known = np.empty(0) if time is None else np.sort(time[~np.isnan(time)])
        return known if len(known) else None

    def encoder(self, most_values: int) -> ContextEncoder:
        """Return the encoder of the context, with the most frequent values of each column."""
        counts, context = self.sums.counts, self.wider.context
        ordered = ordered_columns(counts, self.drawn, most_values)
        if ordered:
            # Without fractions and grades no wider rows were drawn.
            context = max(self.wider, self.drawn, key=lambda log: log.rows).context
        return ContextEncoder.of_counts(counts, context, most_values, ordered)

    def unit(self, log: Log) -> Log:
        """Return rows of this log with the weights of a fit, mostly of mean 1 over all of them."""
        if log.sample_weight is None:
            return log
        return replace(log, sample_weight=log.sample_weight / self.weight_unit)

    def missing_scores(self) -> MissingScores | None:
        """Return how many scores are missing; None if nothing is."""
        if not self.sums.incomplete:
            return None
        columns = dict(zip(self.schema.score_columns, self.sums.missing.tolist(), strict=True))
        return MissingScores(self.sums.rows, self.sums.incomplete, columns)


def _fractions(blocks: LogBlocks) -> bool:
    """Return whether some context column holds fractions, whose quantiles are needed."""
    return any(counts is None for counts in value_counts(blocks[0].context))


def _pass(
    blocks: LogBlocks, starts: Sequence[int], rows: int, wide: bool
) -> tuple[list[LogSums], tuple[Log, Log], dict[str, LabelLevels]]:
    """Return the sums of each block, the rows that would be drawn of so many, and levels."""
    drawn = drawn_rows(rows, RECENT_ROWS)
    wider = drawn_rows(rows, QUANTILE_ROWS) if wide else drawn[:1]
    looked: Iterator[tuple[LogSums, list[Log], list[LabelLevels]]]
    looked = with_workers(blocks).each(_facts_of, drawn, wider, own=list(starts))
    totals, sums, parts = [SumTree() for _ in blocks.schema.graded], [], []
    for number, (facts, some, levels) in enumerate(looked):
        sums.append(facts)
        parts.append(some)
        # One after the other, as those of many blocks would fill the memory.
        for name, total, part in zip(blocks.schema.graded, totals, levels, strict=True):
            total.add(PartSum(number, number + 1, (part,)))
            _require_few(name, max(len(each.values[0]) for each in total.parts))
    samples: Any = tuple(map(concatenated, zip(*parts, strict=True)))
    counted = {n: total.total()[0] for n, total in zip(blocks.schema.graded, totals, strict=True)}
    for name, every in counted.items():
        _require_few(name, len(every))
    return sums, samples, counted


def _require_few(name: str, levels: int) -> None:
    if levels > MOST_LEVELS:
        raise UsageError(
            f"Objective '{name}' has more than {MOST_LEVELS:,} different labels, more than are "
            "counted; round them."
        )


def _facts_of(
    log: Log, first: int, drawn: np.ndarray, wider: np.ndarray
) -> tuple[LogSums, list[Log], list[LabelLevels]]:
    """Return the sums of a block, those of its rows that are drawn, and its graded labels.

    Args:
        log: The block.
        first: The place of its first row among those that count.
        drawn: Places of rows, ascending.
        wider: Places of other rows, likewise.
    """
    log = log.counted(empty=True)
    labels, lost, weight = log.known_labels(), np.isnan(log.scores), log.sample_weight
    w = np.ones(log.rows) if weight is None else weight
    mass, there = float(w.sum()), log.shown
    shown = np.full(labels.shape[1], log.rows), np.full(labels.shape[1], mass)
    if there is not None:
        shown = there.sum(axis=0), w @ there
    sums = LogSums(
        log.rows,
        mass,
        w @ labels,
        *shown,
        *_ends(labels, there),
        lost.sum(axis=0),
        int(lost.any(axis=1).sum()),
        value_counts(log.context),
        PlaceSums.of(log),
    )
    some = [log.take(rows_in_block(index, first, log.rows)) for index in (drawn, wider)]
    graded = [log.schema.names.index(name) for name in log.schema.graded]
    return sums, some, [LabelLevels.of(*log.shown_labels(m)) for m in graded]


def _ends(labels: np.ndarray, shown: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest label of each objective, of the rows that show it."""
    numbers = labels.astype(np.float64) if shown is not None or not len(labels) else labels
    seen: Any = True if shown is None else shown
    if numbers.dtype.kind != "f":
        return numbers.min(axis=0).astype(np.float64), numbers.max(axis=0).astype(np.float64)
    low = numbers.min(axis=0, where=seen, initial=np.inf)
    return low, numbers.max(axis=0, where=seen, initial=-np.inf)
