"""LogFacts: what a fit has to know of all rows before it begins, of a log in blocks."""

__all__ = ["LogFacts", "measurable", "require_measurable"]

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from harmonrank.data import ContextEncoder, Log, Schema
from harmonrank.data.context import QUANTILE_ROWS, Counts, added_counts, value_counts
from harmonrank.data.label_levels import MOST_LEVELS, LabelLevels, LevelSum
from harmonrank.data.log import one_label
from harmonrank.data.rows.blocks import drawn_rows
from harmonrank.data.rows.engine_blocks import EngineBlocks
from harmonrank.data.rows.kept_rows import joined
from harmonrank.data.rows.log_blocks import LogBlocks
from harmonrank.engine import current_engine
from harmonrank.fusion.drift.reference import RECENT_ROWS, Reference
from harmonrank.fusion.quality.missing_scores import MissingScores
from harmonrank.fusion.quality.position_quality import PlaceSums
from harmonrank.support.errors import DataError, UsageError


def measurable(schema: Schema) -> bool:
    """Return whether rows in blocks are measured: neither positions nor other kinds of labels."""
    return schema.plain and schema.position is None


def require_measurable(schema: Schema) -> None:
    """Refuse what is measured with all rows in memory.

    Raises:
        UsageError: The schema has a position, or a graded or conditional objective.
    """
    schema.require_plain("Measuring in blocks, of a table larger than --memory or on a cluster,")
    if schema.position is not None:
        raise UsageError(
            f"Positions ('{schema.position}') are corrected with all rows in memory where a model "
            "is measured; raise --memory, or leave the position out."
        )


@dataclass(frozen=True)
class LogFacts:
    """Sums over the rows that count, and some of these rows.

    Attributes:
        schema: Which column is what.
        first: The place of each block's first row among those that count.
        rows: How many count.
        mass: Their weight.
        positives: (M,) how many of them are positive.
        weighted: (M,) weight of the positive ones.
        shown: (M,) how many of them show each objective.
        shown_mass: (M,) weight of these.
        missing: (M,) how many miss each score.
        incomplete: How many miss at least one.
        counts: Of every context column, how many rows have each value.
        drawn: At most `RECENT_ROWS` rows, those that `Log.sampled` would draw.
        wider: At most `QUANTILE_ROWS`, likewise, if some context column holds fractions or some
            objective is graded.
        levels: By graded objective, its labels and how many rows have each.
        places: Sums over rows whose weights undo their places; None if there are no places.
    """

    schema: Schema
    first: tuple[int, ...]
    rows: int
    mass: float
    positives: np.ndarray
    weighted: np.ndarray
    shown: np.ndarray
    shown_mass: np.ndarray
    missing: np.ndarray
    incomplete: int
    counts: tuple[Counts, ...]
    drawn: Log
    wider: Log
    levels: Mapping[str, LabelLevels] = field(default_factory=dict)
    places: PlaceSums | None = None

    @classmethod
    def of(cls, blocks: LogBlocks) -> "LogFacts":
        """Look at all rows once; twice if some of them do not count.

        Raises:
            DataError: No row counts, or an objective has one class only, or no score.
            UsageError: A graded objective has more different labels than are counted.
        """
        schema = blocks.schema
        wide = bool(schema.graded) or _fractions(blocks)
        found, drawn, levels = _pass(blocks, blocks.starts, blocks.rows, wide)
        rows = sum(part[0] for part in found)
        if rows < blocks.rows:
            if not rows:
                raise DataError(
                    f"All {blocks.rows:,} rows have sample weight 0; expected at least one that "
                    "counts."
                )
            starts = np.cumsum([0, *(part[0] for part in found[:-1])])
            found, drawn, levels = _pass(blocks, starts.tolist(), rows, wide)
        sizes, mass, *sums, missing, incomplete, counts, placed = zip(*found, strict=True)
        positives, weighted, shown, shown_mass = (np.sum(part, axis=0) for part in sums)
        merged = [reduce(added_counts, column) for column in zip(*counts, strict=True)]
        facts = cls(
            schema,
            tuple(int(n) for n in np.cumsum([0, *sizes[:-1]])),
            rows,
            float(sum(mass)),
            positives,
            weighted,
            shown,
            shown_mass,
            np.sum(missing, axis=0),
            sum(incomplete),
            tuple(merged),
            *drawn,
            levels,
            None if placed[0] is None else reduce(add, placed),
        )
        facts._check()
        return facts

    def _check(self) -> None:
        if not self.schema.plain:
            self._check_pairs()
        for name, count in zip(self.schema.names, self.positives, strict=True):
            if self.schema.plain and count in (0, self.rows):
                raise DataError(
                    f"Objective '{name}' has no {'negative' if count else 'positive'} label among "
                    f"the {self.rows:,} training rows, so its ranking has no meaning there; add "
                    "rows or leave it out."
                )
        for name, count in zip(self.schema.score_columns, self.missing, strict=True):
            if count == self.rows:
                raise DataError(
                    f"Score column '{name}' is missing in all {self.rows:,} training rows; leave "
                    "its objective out, or use rows that have it."
                )

    def _check_pairs(self) -> None:
        """Refuse an objective of which no two rows that show it differ."""
        for m, name in enumerate(self.schema.names):
            alike = self.positives[m] in (0, self.shown[m])
            if len(self.levels[name]) < 2 if name in self.levels else alike:
                raise one_label(self.schema, name, self.rows, int(self.shown[m]), "training")

    @property
    def prevalence(self) -> np.ndarray:
        """The share of positives of each objective, by sample weight, as `Log.prevalence`."""
        share: np.ndarray = self.weighted / (self.mass if self.schema.plain else self.shown_mass)
        for name, levels in self.levels.items():
            share[self.schema.names.index(name)] = 0.5 - 0.5 * np.sqrt(levels.ties())
        return share

    @property
    def shown_share(self) -> np.ndarray:
        """The share of rows that show each objective, by sample weight."""
        share: np.ndarray = self.shown_mass / self.mass
        return share

    @property
    def weight_unit(self) -> float:
        """What a weight is divided by in a fit, as in `Log.with_unit_weights`."""
        mean = self.mass / self.rows
        if self.places is None or not self.places.answered[0]:
            return mean
        total, square = self.places.answered.tolist()
        return float(mean / (total / square))

    def encoder(self, most_values: int | None = None) -> ContextEncoder:
        """Return the encoder of the context; as many values as `ContextEncoder.fit` keeps."""
        most = () if most_values is None else (most_values,)
        return ContextEncoder.of_counts(self.counts, self.wider.context, *most)

    def reference(self) -> Reference:
        """Return what the scores look like."""
        return Reference.of(self.unit(self.drawn))

    def unit(self, log: Log) -> Log:
        """Return rows of this log with the weights of a fit, mostly of mean 1 over all of them."""
        if log.sample_weight is None:
            return log
        return replace(log, sample_weight=log.sample_weight / self.weight_unit)

    def missing_scores(self) -> MissingScores | None:
        """Return how many scores are missing; None if nothing is."""
        if not self.incomplete:
            return None
        columns = dict(zip(self.schema.score_columns, self.missing.tolist(), strict=True))
        return MissingScores(self.rows, self.incomplete, columns)


def _fractions(blocks: LogBlocks) -> bool:
    """Return whether some context column holds fractions, whose quantiles are needed."""
    return any(counts is None for counts in value_counts(blocks[0].context))


def _pass(
    blocks: LogBlocks, starts: Sequence[int], rows: int, wide: bool
) -> tuple[list[Any], tuple[Log, Log], dict[str, LabelLevels]]:
    """Return what is known of each block, the rows that would be drawn of so many, and levels."""
    drawn = drawn_rows(rows, RECENT_ROWS)
    wider = drawn_rows(rows, QUANTILE_ROWS) if wide else drawn[:1]
    engine = current_engine()
    looked: Iterator[tuple[tuple[Any, ...], list[Log], list[LabelLevels]]]
    if engine.name == "local":
        logs = zip(starts, blocks.each(_itself), strict=True)
        looked = (_facts_of(log, first, drawn, wider) for first, log in logs)
    else:
        looked = EngineBlocks(engine, blocks).each_with(_facts_of, starts, drawn, wider)
    sums, found, parts = [LevelSum() for _ in blocks.schema.graded], [], []
    for facts, some, levels in looked:
        found.append(facts)
        parts.append(some)
        # One after the other, as of many blocks they would fill the memory.
        for name, total, part in zip(blocks.schema.graded, sums, levels, strict=True):
            total.add(part)
            _require_few(name, total.size)
    samples: Any = tuple(map(joined, zip(*parts, strict=True)))
    counted = {name: total.total() for name, total in zip(blocks.schema.graded, sums, strict=True)}
    for name, all_levels in counted.items():
        _require_few(name, len(all_levels))
    return found, samples, counted


def _require_few(name: str, levels: int) -> None:
    if levels > MOST_LEVELS:
        raise UsageError(
            f"Objective '{name}' has more than {MOST_LEVELS:,} different labels, more than are "
            "counted where a table is read in blocks; round them, or raise --memory."
        )


def _itself(log: Log) -> Log:
    return log


def _within(index: np.ndarray, first: int, rows: int) -> np.ndarray:
    low, high = np.searchsorted(index, [first, first + rows])
    found: np.ndarray = index[low:high] - first
    return found


def _facts_of(
    log: Log, first: int, drawn: np.ndarray, wider: np.ndarray
) -> tuple[tuple[Any, ...], list[Log], list[LabelLevels]]:
    """Return the sums of a block, those of its rows that are drawn, and its graded labels.

    Args:
        log: The block.
        first: The place of its first row among those that count.
        drawn: Places of rows, ascending.
        wider: Places of other rows, likewise.
    """
    weight = log.sample_weight
    if weight is not None and not weight.all():
        log = log.take(np.flatnonzero(weight))
        weight = log.sample_weight
    labels, lost = log.known_labels(), np.isnan(log.scores)
    w = np.ones(log.rows) if weight is None else weight
    counts = value_counts(log.context)
    mass, total = float(w.sum()), np.int64 if labels.dtype.kind != "f" else np.float64
    shown = np.full(labels.shape[1], log.rows), np.full(labels.shape[1], mass)
    if log.shown is not None:
        shown = log.shown.sum(axis=0), w @ log.shown
    sums = log.rows, mass, labels.sum(axis=0, dtype=total), w @ labels, *shown
    some = [log.take(_within(index, first, log.rows)) for index in (drawn, wider)]
    places = [log.schema.names.index(name) for name in log.schema.graded]
    levels = [LabelLevels.of(*log.shown_labels(m)) for m in places]
    gaps = lost.sum(axis=0), int(lost.any(axis=1).sum())
    return (*sums, *gaps, counts, PlaceSums.of(log)), some, levels
