"""Training: what a stream has learned, and what decides how it goes on.

It is a value: every step returns another one, a function of the step and of nothing else. What the
registry says, how events were cut into chunks and when a process was killed has no part in it.
"""

__all__ = ["GuardRows", "Replacement", "Seen", "StreamTraining", "agreed", "is_guard", "seen_by"]

import hashlib
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, Self
from zlib import crc32

import numpy as np
import polars as pl

from harmonrank.data import Log, Schema, read_log
from harmonrank.data.rows.blocks import drawn_rows
from harmonrank.fusion import Method
from harmonrank.fusion.drift.drift import Drift
from harmonrank.fusion.drift.reference import RECENT_ROWS
from harmonrank.metrics import population_stability_index
from harmonrank.streaming.config import StreamConfig
from harmonrank.streaming.join.join import Batch, Exposures
from harmonrank.streaming.learners.learner import StreamLearner, looked_at
from harmonrank.streaming.learners.prequential import Prequential

_MIXING = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: neighbours end up far apart
_DRIFT_ROWS = 60_000  # of an interval; more would hardly tell more
# Where the whole interval is of both kinds, its newest part may be of the new one alone.
_PARTS = (2, 4)
_PSI_ROWS = 20_000  # of each side; more would not change the index by a thousandth


def is_guard(request: pl.Series, share: float, seed: int) -> np.ndarray:
    """Return which rows are guard rows: all rows of a request, or none.

    A salted hash of the request decides, so that it is the same in every run, and a request that
    is in two intervals is on one side.
    """
    known = request.cast(pl.String).fill_null("")
    names = known.unique(maintain_order=True)
    hashed = np.array([crc32(name.encode(), seed) for name in names.to_list()], np.uint64)
    chosen = names.filter(pl.Series((hashed * _MIXING) >> np.uint64(32) < int(share * 2**32)))
    return known.is_in(chosen.implode()).to_numpy()


@dataclass(frozen=True, eq=False)
class GuardRows:
    """Rows that wait to be learned until they have judged a model.

    Rows of one batch may lack a class of a rare objective, and then say nothing about it. Such
    rows wait for those of the next batch.

    Attributes:
        rows: Labelled rows, oldest first.
        judged: Whether they have judged a model, so that the next batch learns them.
    """

    rows: pl.DataFrame | None = None
    judged: bool = False

    @property
    def count(self) -> int:
        """How many rows wait."""
        return 0 if self.rows is None else self.rows.height

    def released(self, most: int, *, all_of_them: bool = False) -> tuple[Self, pl.DataFrame | None]:
        """Return what is left, and the rows that are to be learned now.

        Args:
            most: So many rows may wait to judge a model; of more, the oldest are learned.
            all_of_them: Whether none may wait any longer.
        """
        if self.rows is None or self.judged or all_of_them:
            return type(self)(), self.rows
        spare = max(self.rows.height - most, 0)
        if not spare:
            return self, None
        return replace(self, rows=self.rows[spare:]), self.rows[:spare]

    def with_rows(self, rows: pl.DataFrame) -> Self:
        """Return these guard rows and the new ones, none of which has judged a model."""
        both = rows if self.rows is None else pl.concat([self.rows, rows])
        return type(self)(both if both.height else None)

    def log(self, schema: Schema) -> Log | None:
        """Return the rows as a log; None if there are none."""
        return None if self.rows is None else read_log(self.rows, schema)

    def lacking(self, schema: Schema) -> str | None:
        """Return why the rows cannot judge a model; None if they can."""
        log = self.log(schema)
        if log is None:
            return "there are no guard rows yet"
        for name, labels in zip(schema.names, log.counted().known_labels().T, strict=True):
            for value, kind in ((1, "positive"), (0, "negative")):
                if not (labels == value).any():
                    return f"no {kind} label of '{name}' among the {log.rows:,} guard rows yet"
        return None


@dataclass(frozen=True, eq=False)
class Replacement:
    """Upstream models were replaced, at the latest at this time.

    It is kept until the learner reaches it, as the rows that are learned are older.

    Attributes:
        since: From here on scores are those of the new models.
        rows: Exposures with such scores; labels are not needed.
    """

    since: datetime
    rows: pl.DataFrame


@dataclass(frozen=True, eq=False)
class Seen:
    """What a model says about the scores of an interval.

    Attributes:
        drift: Of all rows, or of the newest part in which upstream models are other ones.
        replacement: If they are.
    """

    drift: Drift
    replacement: Replacement | None


def seen_by(model: Method, rows: pl.DataFrame, start: datetime, time: str) -> Seen:
    """Measure the drift of an interval, and find out whether upstream models were replaced in it.

    Args:
        model: What scores are compared with.
        rows: Of the interval, in order of arrival.
        start: Of the interval.
        time: The column of times.
    """
    whole = model.drift(_drawn(rows, _DRIFT_ROWS))
    if whole.replaced:
        return Seen(whole, Replacement(start, _drawn(rows, RECENT_ROWS)))
    for part in _PARTS if whole.moved else ():
        newest = rows[-(rows.height // part) :]
        drift = model.drift(_drawn(newest, _DRIFT_ROWS))
        if drift.replaced:
            since: datetime = newest[time].min()  # type: ignore[assignment]
            return Seen(drift, Replacement(since, _drawn(newest, RECENT_ROWS)))
    return Seen(whole, None)


def _drawn(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return rows drawn at random, in their order; the same ones each time."""
    return rows[drawn_rows(rows.height, most)]


def agreed(old: Seen, new: Seen | None) -> Seen:
    """Return what an older model says, or a newer one where that is no contradiction.

    Time has moved all scores somewhat since an older model learned, which hides what was replaced.
    A newer model can tell; the older one agrees if it sees the same scores moved.
    """
    if old.replacement is not None or new is None or new.replacement is None:
        return old
    return new if set(new.drift.replaced) <= set(old.drift.moved) else old


class Candidate(NamedTuple):
    """A model to publish, and the rows that judge it."""

    model: Method
    rows: Log


@dataclass(frozen=True, eq=False)
class StreamTraining:
    """A learner, and the rows that it is still to learn from.

    Attributes:
        schema: Of the labelled rows.
        learner: What learns.
        quality: Prequential, of rows scored before they were learned.
        guard: Rows that judge a model before they are learned.
        replacements: That the learner has not reached, oldest first.
        digest: Of the names of all rows that were learned, in their order.
        since: When the first interval that was learned began.
        until: When the last one ended.
        watched: The first interval whose exposures a model of this stream has seen.
        scores: Of the batch that was learned last, or of some of its rows.
    """

    schema: Schema
    config: StreamConfig
    learner: StreamLearner
    quality: Prequential
    guard: GuardRows = field(default_factory=GuardRows)
    replacements: tuple[Replacement, ...] = ()
    digest: str = ""
    since: datetime | None = None
    until: datetime | None = None
    watched: datetime | None = None
    scores: pl.DataFrame | None = None

    @property
    def learned_rows(self) -> int:
        """How many rows were learned."""
        return self.learner.learned_rows

    def completed(self, exposures: Exposures) -> tuple[Self, Seen | None]:
        """Return the training after an interval is complete, and what its model says of it."""
        if self.adjusted is None:
            return self, None
        seen = seen_by(self.adjusted, exposures.rows, exposures.start, self._time)
        if seen.replacement is None and self.watched is not None:
            return self, seen
        newer = () if seen.replacement is None else (seen.replacement,)
        watched = self.watched or exposures.start
        return replace(self, replacements=(*self.replacements, *newer), watched=watched), seen

    @property
    def adjusted(self) -> Method | None:
        """The model, adjusted to replacements that are newer than the rows it has learned."""
        return self._models[-1] if self._models else None

    @cached_property
    def _models(self) -> list[Method]:
        """The learner's model, if there is one, and what it becomes by each replacement."""
        models = [] if self.learner.model is None else [self.learner.model]
        for change in self.replacements if models else ():
            models.append(models[-1].recalibrated(change.rows, scores="all"))
        return models

    def stability(self, rows: pl.DataFrame) -> dict[str, float]:
        """Return the population stability index of each score against the last learned batch."""
        if self.scores is None:
            return {}
        now = read_log(rows, self.schema, labels=False).sampled(_PSI_ROWS).scores
        indices = map(population_stability_index, self.scores.to_numpy().T, now.T)
        return dict(zip(self.schema.score_columns, indices, strict=True))

    def learned(self, batch: Batch) -> Self:
        """Return the training after a batch: score it, then learn it.

        Rows that have judged a model are learned first, as they are older. Guard rows of this
        batch wait.
        """
        log = read_log(batch.rows, self.schema)
        now = replace(self, since=self.since or batch.start, until=batch.end)
        if self.learner.model is not None:
            model = self.learner.model
            now = replace(now, quality=self.quality.scored(model, looked_at(log, model)))
        now, rows = now._passed(batch, self.until or batch.end)
        guard, older = now.guard.released(self.config.guard_rows)
        judges = pl.Series(is_guard(rows[self._request], self.config.guard_share, self.config.seed))
        fresh, guard = rows.filter(~judges), guard.with_rows(rows.filter(judges))
        now = now._with_rows(fresh if older is None else pl.concat([older, fresh]), batch.end)
        if now.learner.model is None or guard.lacking(self.schema) is None:
            guard = replace(guard, judged=True)
        scores = pl.DataFrame(log.sampled(_PSI_ROWS).scores, list(self.schema.score_columns))
        return replace(now, guard=guard, scores=scores)

    def _passed(self, batch: Batch, before: datetime) -> tuple[Self, pl.DataFrame]:
        """Let the learner pass the replacements that a batch reaches.

        What is older than a replacement is learned before the learner knows of it.

        Returns:
            The training, and the rows of the batch that are still to be learned.
        """
        reached = [change for change in self.replacements if change.since < batch.end]
        model = self.learner.model
        unwatched = self.watched is None or batch.start < self.watched
        if not reached and model is not None and unwatched:
            # There was no model yet when the exposures of this batch were complete.
            seen = seen_by(model, batch.rows, batch.start, self._time)
            reached = [] if seen.replacement is None else [seen.replacement]
        now, rows = self, batch.rows
        for change in reached:
            _, older = now.guard.released(0, all_of_them=True)
            is_older = rows[self._time] < change.since
            first = rows.filter(is_older)
            both = first if older is None else pl.concat([older, first])
            now = replace(now._with_rows(both, before), guard=GuardRows())
            newer = read_log(change.rows, self.schema, labels=False)
            now = replace(now, learner=now.learner.recalibrated(newer))
            rows = rows.filter(~is_older)
        left = tuple(change for change in self.replacements if change.since >= batch.end)
        return replace(now, replacements=left), rows

    def held(self) -> str | None:
        """Return why there is nothing to publish; None if there is."""
        if self.learner.model is None:
            return "too few rows for a model yet"
        return None if self.guard.judged else self.guard.lacking(self.schema)

    def candidate(self) -> Candidate | None:
        """Return what to publish; None if it is held.

        Both are adjusted to replacements of upstream models that are newer than the rows.
        """
        log, model = self.guard.log(self.schema), self.adjusted
        if model is None or log is None or not self.guard.judged:
            return None
        for before, after in pairwise(self._models):
            log = after.fitted.scores_of_now(log, before.fitted)
        return Candidate(model, looked_at(log, model))

    @property
    def _request(self) -> str:
        assert self.schema.request is not None
        return self.schema.request

    @property
    def _time(self) -> str:
        return self.schema.time or "time"

    def _with_rows(self, rows: pl.DataFrame | None, at: datetime) -> Self:
        """Learn rows, and count them."""
        if rows is None or not rows.height:
            return self
        seed = int(
            np.random.SeedSequence([self.config.seed, self.learned_rows]).generate_state(1)[0]
        )
        names = pl.concat_str(self._request, "item", separator="\t").str.join("\n")
        text = f"{self.digest}\n{rows.select(names).item()}"
        return replace(
            self,
            learner=self.learner.learned(read_log(rows, self.schema), seed=seed, at=at),
            digest=hashlib.sha256(text.encode()).hexdigest(),
        )
