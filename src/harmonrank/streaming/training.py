"""Training: what a stream has learned, and what decides how it goes on.

It is a value: every step returns another one, a function of the step and of nothing else. What the
registry says, how events were cut into chunks and when a process was killed has no part in it.
"""

__all__ = ["StreamTraining"]

import hashlib
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
import polars as pl

from harmonrank.data import Log, Schema, read_log
from harmonrank.fusion import Method
from harmonrank.fusion.position.correction import corrected
from harmonrank.metrics import population_stability_index
from harmonrank.streaming.config import StreamConfig
from harmonrank.streaming.guard import GuardRows, is_guard
from harmonrank.streaming.join.join import Batch, Exposures
from harmonrank.streaming.learners.learner import StreamLearner
from harmonrank.streaming.prequential import Prequential
from harmonrank.streaming.replacement import Replacement, Seen, seen_by

_PSI_ROWS = 20_000  # of each side; more would not change the index by a thousandth


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
            models.append(models[-1].recalibrated(change.rows))
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
            now = replace(now, quality=self.quality.scored(model, _looked_at(model, log)))
        now, rows = now._passed(batch, self.until or batch.end)
        guard, older = now.guard.released(self.config.guard_rows)
        judges = pl.Series(is_guard(rows[self._request], self.config.guard_share, self.config.seed))
        fresh, guard = rows.filter(~judges), guard.with_rows(rows.filter(judges))
        now = now._with_rows(fresh if older is None else pl.concat([older, fresh]), batch.end)
        if now.learner.model is None or guard.lacking(self.schema) is None:
            guard = guard.having_judged()
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

    def candidate(self) -> tuple[Method, Log] | None:
        """Return the model to publish and the rows that judge it; None if it is held.

        Both are adjusted to replacements of upstream models that are newer than the rows.
        """
        log, model = self.guard.log(self.schema), self.adjusted
        if model is None or log is None or not self.guard.judged:
            return None
        for before, after in pairwise(self._models):
            log = after.fitted.scores_of_now(log, before.fitted)
        return model, _looked_at(model, log)

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


def _looked_at(model: Method, log: Log) -> Log:
    """Return rows that count as if every place had been looked at, by the curve of a model."""
    return corrected(log.aligned(replace(log.schema, examination=model.schema.examination)))
