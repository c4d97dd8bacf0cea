"""Correction: weights by which feedback counts as if every place had been looked at.

With feedback = looked at × wanted, the weight of a row is the chance that it was looked at, given
its feedback, over the chance of its place (eqs. 3 and 4 of docs/position.md):

    u = 1/θ where there is any feedback, (1 − ρ)/(1 − θρ) where there is none.

Given what a fusion sees, E[u f(y)] = E f(wanted) for every f: one weight per row makes losses,
heads and metrics of all objectives unbiased, and it is never negative.
"""

__all__ = [
    "DRAWN",
    "MOST_WEIGHT",
    "PlaceCorrection",
    "PlaceCounts",
    "corrected",
    "corrected_blocks",
    "inverse_weights",
    "place_correction",
]

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Self

import numpy as np

from harmonrank.data import Log, Schema
from harmonrank.data.rows.blocks import drawn_rows, rows_in_block
from harmonrank.data.rows.engine_blocks import with_workers
from harmonrank.data.rows.kept_rows import concatenated
from harmonrank.data.rows.log_blocks import LogBlocks, MemoryBlocks
from harmonrank.data.values import chances_at
from harmonrank.fusion.click_model import ClickModel, RelevanceFeatures
from harmonrank.support.errors import DataError

MOST_WEIGHT = 20.0
"""Chances below 1/20 are taken for 1/20: some bias, against weights that a few rows would rule."""

DRAWN = 200_000, 100_000
"""So many rows at most are drawn to tell the curve, and relevance."""
# A place with fewer answered rows shares the chance of the places after it.
_FEWEST_ANSWERED = 30
_MOST_PLACES = 60


def corrected(log: Log) -> Log:
    """Return rows whose sample weights undo their places, where the schema names a position.

    The schema of what is returned has the examination curve, estimated where it was not given.
    Rows without labels or without a position come back as they are, and so do rows that are
    corrected already. Candidates that were not shown tell nothing, so they have the weight 0.
    """
    if log.position is None or log.labels is None or log.inverse is not None:
        return log
    return place_correction(MemoryBlocks(log))(log)


def corrected_blocks(blocks: LogBlocks) -> LogBlocks:
    """Return blocks whose sample weights undo their places, as `corrected` does with a log.

    Each block is corrected when it is read.
    """
    if blocks.schema.position is None or blocks[0].inverse is not None:
        return blocks
    correction = place_correction(blocks)
    return blocks.changed(correction, replace(blocks.schema, examination=correction.curve))


def place_correction(blocks: LogBlocks) -> "PlaceCorrection":
    """Learn what undoes the places of a log from two looks at it.

    Feedback is counted by place, then the rows are drawn from which the curve and relevance are
    learned.
    """
    where = with_workers(blocks)
    counts = list(where.each(PlaceCounts.of))
    total: PlaceCounts = reduce(add, counts)
    total.require_shown(blocks.schema)
    starts = np.cumsum([0, *(part.shown for part in counts[:-1])]).tolist()
    wanted = tuple(drawn_rows(total.shown, most) for most in DRAWN)
    parts = zip(*where.each(_shown_among, wanted, own=starts), strict=True)
    return PlaceCorrection.of(blocks.schema, total, *map(concatenated, parts))


def _shown_among(log: Log, first: int, wanted: tuple[np.ndarray, ...]) -> list[Log]:
    """Return the rows with these numbers among all that were shown."""
    assert log.position is not None
    shown = np.flatnonzero(log.position >= 0)
    return [log.take(shown[rows_in_block(index, first, len(shown))]) for index in wanted]


@dataclass(frozen=True, eq=False)
class PlaceCounts:
    """How much feedback there is at each place.

    Attributes:
        places: Those at which some row was shown, ascending.
        answered: (places,) rows with any feedback.
        shown: How many rows were shown.
        unshown: How many rows that were not shown have feedback, which cannot be.
    """

    places: np.ndarray
    answered: np.ndarray
    shown: int
    unshown: int = 0

    @classmethod
    def of(cls, log: Log) -> "PlaceCounts":
        """Count the rows of a log."""
        assert log.position is not None
        there, answered = log.position >= 0, _answered(log)
        places, at = np.unique(log.position[there], return_inverse=True)
        counts = np.bincount(at.reshape(-1), answered[there], len(places))
        return cls(places, counts, int(there.sum()), int(answered[~there].sum()))

    def __add__(self, other: "PlaceCounts") -> "PlaceCounts":
        both = np.concatenate([self.places, other.places])
        places, at = np.unique(both, return_inverse=True)
        counts = np.concatenate([self.answered, other.answered])
        answered = np.bincount(at.reshape(-1), counts, len(places))
        return PlaceCounts(places, answered, self.shown + other.shown, self.unshown + other.unshown)

    def require_shown(self, schema: Schema) -> None:
        """Refuse a log in which no row was shown, or one has feedback that was not.

        Raises:
            DataError: So it is.
        """
        if not self.shown or self.unshown:
            what = "has feedback on rows without a place" if self.shown else "is null in all rows"
            raise DataError(
                f"Position column '{schema.position}' {what}; a row without a place is one that "
                "was not shown. Fill in where rows were shown."
            )


@dataclass(frozen=True, eq=False)
class PlaceCorrection:
    """What undoes places: a function from rows to the same rows with other weights.

    Attributes:
        curve: The examination curve.
        features: What relevance is told by.
        model: Tells relevance; None where no row has feedback.
    """

    curve: dict[int, float]
    features: RelevanceFeatures | None = None
    model: ClickModel | None = None

    @classmethod
    def of(cls, schema: Schema, places: PlaceCounts, curve: Log, relevance: Log) -> Self:
        """Learn from the rows that were shown, of which some are drawn.

        Args:
            schema: Of all of them; its curve is taken as it is, where it has one.
            places: Counts of all of them.
            curve: At most so many rows, drawn for the curve.
            relevance: Likewise for relevance.
        """
        known = dict(schema.examination) or _curve(schema, places, curve)
        if not places.answered.any():
            return cls(known)
        features = RelevanceFeatures.of(relevance)
        assert relevance.position is not None
        chances = np.unique(_chance(known, places.places))
        code = np.searchsorted(chances, _chance(known, relevance.position))
        given = features(relevance), code, _answered(relevance), _weight(relevance)
        return cls(known, features, ClickModel.fit(*given, np.log(chances)))

    def __call__(self, log: Log) -> Log:
        """Return rows with weights that undo their places; 0 of those that were not shown."""
        assert log.position is not None
        shown = log.position >= 0
        inverse = np.zeros(log.rows)
        inverse[shown] = self._inverse(log if shown.all() else log.take(np.flatnonzero(shown)))
        return log.corrected(inverse, self.curve)

    def _inverse(self, log: Log) -> np.ndarray:
        if self.features is None or self.model is None:
            return np.ones(log.rows)
        assert log.position is not None
        features = self.features
        # Labels are not looked at, and a block of rows is copied at a time.
        bare = replace(log, labels=None, truth=None, request=None)
        rho = self.model.relevance(
            lambda b: features(bare.take(np.arange(b.start, b.stop))), log.rows
        )
        return inverse_weights(_answered(log), _chance(self.curve, log.position), rho)


def _chance(curve: Mapping[int, float], places: np.ndarray) -> np.ndarray:
    chance: np.ndarray = np.maximum(chances_at(curve, places), 1 / MOST_WEIGHT)
    return chance


def inverse_weights(answered: np.ndarray, chance: np.ndarray, rho: np.ndarray) -> np.ndarray:
    """Return P(looked at | feedback, x, place)/θ of each row.

    >>> inverse_weights(np.array([True, False]), np.array([0.5, 0.5]), np.array([0.2, 0.2]))
    array([2.        , 0.88888889])

    Args:
        answered: (rows,) whether there was any feedback.
        chance: θ, (rows,) the chance that the place of each row is looked at.
        rho: ρ, (rows,) the chance of any feedback on the row if it is looked at, below 1.
    """
    return np.where(answered, 1 / chance, (1 - rho) / (1 - chance * rho))


def _curve(schema: Schema, counts: PlaceCounts, part: Log) -> dict[int, float]:
    """Return the examination curve of all rows that were counted, its largest chance 1.

    Feedback alone cannot tell rarely looked at from rarely wanted, so the curve is relative.

    Args:
        schema: Of the log.
        counts: Of all rows.
        part: Some of them.

    Raises:
        DataError: All rows are at one place, or there is too little feedback.
    """
    name, places = schema.position, counts.places
    if len(places) < 2:
        raise DataError(
            f"Position column '{name}' is {places[0]} in all {counts.shown:,} rows, so no curve "
            "can be estimated; leave `position` out, or give `examination`."
        )
    pool = _pools(counts.answered)
    first = places[np.r_[True, np.diff(pool) > 0]]
    if len(first) < 2:
        raise DataError(
            f"{int(counts.answered.sum()):,} rows with feedback are too few to estimate how often "
            f"each place of '{name}' is looked at; expected at least {2 * _FEWEST_ANSWERED}. Give "
            "`examination`, or more rows."
        )
    assert part.position is not None
    model = ClickModel.fit(
        RelevanceFeatures.of(part)(part),
        pool[np.searchsorted(places, part.position)],
        _answered(part),
        _weight(part),
    )
    chance = np.exp(model.log_chance - model.log_chance.max())
    return dict(zip(first.tolist(), chance.tolist(), strict=True))


def _pools(counts: np.ndarray) -> np.ndarray:
    """Return the pool of each place, of so many answered rows each, so that all are answered."""
    fewest = max(_FEWEST_ANSWERED, counts.sum() / _MOST_PLACES)
    number, total = np.zeros(len(counts), np.int64), 0.0
    for place in range(1, len(counts)):
        total += counts[place - 1]
        opens = total >= fewest and counts[place:].sum() >= fewest
        number[place] = number[place - 1] + opens
        total = 0.0 if opens else total
    return number


def _answered(log: Log) -> np.ndarray:
    answered: np.ndarray = log.known_labels().max(axis=1) > 0
    return answered


def _weight(log: Log) -> np.ndarray:
    return np.ones(log.rows) if log.own_weight is None else log.own_weight / log.own_weight.mean()
