"""SumsLearner: the default learns a stream by sums that fade.

While few rows have come it is fitted afresh on all of them, as in a batch. From `opening_rows` on
it goes on from that fit by sums (`harmonrank.model.running`): an hour costs its own rows,
whatever came before.
"""

__all__ = ["SumsLearner"]

from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log, Schema
from harmonrank.data.rows.kept_rows import concatenated
from harmonrank.fusion.harmonrank import MOST_VALUES, DefaultFit, HarmonRank
from harmonrank.fusion.position.correction import corrected
from harmonrank.model.running.running_heads import HALF_LIVES, RunningHeads
from harmonrank.model.running.stored_running import (
    RunningState,
    arrays_of_running,
    running_of_arrays,
    state_of_running,
)
from harmonrank.streaming.learners.learner_files import ARRAYS, read_learner, write_learner
from harmonrank.streaming.learners.recipe import LearnerRecipe, LearnerSettings
from harmonrank.support.errors import DataError
from harmonrank.support.logistic import score_logit

NAME = "sums"
_ROWS = "opening"
_REFERENCE_ROWS = 20_000  # Fewer cannot tell what scores look like given their context.


class SumsState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored of a learner beside its model, its rows and its arrays."""

    learned_rows: Annotated[int, Meta(ge=0)]
    running: RunningState | None


@dataclass(frozen=True, eq=False)
class SumsLearner:
    """Learns the default hour by hour.

    Attributes:
        recipe: What is learned.
        model: What it would publish.
        opening: All rows so far, as long as they are few.
        running: What was learned since they were many.
        learned_rows: How many rows it has ever learned.
    """

    recipe: LearnerRecipe
    model: HarmonRank | None = None
    opening: Log | None = field(default=None, repr=False)
    running: RunningHeads | None = field(default=None, repr=False)
    learned_rows: int = 0

    @classmethod
    def begun(cls, recipe: LearnerRecipe) -> Self:
        """Return a learner that has learned nothing yet."""
        return cls(recipe)

    def learned(self, rows: Log, *, seed: int, at: datetime) -> Self:
        """Return a learner that has learned these rows too."""
        if not rows.rows:
            return self
        hours = at.timestamp() / 3600
        grown = replace(self, learned_rows=self.learned_rows + rows.rows)
        if self.running is None or self.model is None:
            return grown._opened(rows, seed, hours)
        log = _counted(rows, self.model)
        return grown._gone_on(log, self.running, self.model, hours)

    def _opened(self, rows: Log, seed: int, hours: float) -> Self:
        """Fit on all rows so far; go on by sums if they have become many."""
        opening = concatenated([rows] if self.opening is None else [self.opening, rows])
        most = self.recipe.settings.window_rows
        if opening.rows > most:
            opening = opening.take(np.arange(opening.rows - most, opening.rows))
        if not self.recipe.is_enough(opening):
            return replace(self, opening=opening)
        model = self.recipe.fitted(opening, seed=seed)
        assert isinstance(model, HarmonRank)
        if opening.rows < self.recipe.settings.opening_rows:
            return replace(self, model=model, opening=opening)
        log = _counted(opening, model)
        running = RunningHeads.of(
            model.state.heads,
            score_logit(log.scores),
            log.codes(model.encoder),
            log.known_labels(),
            log.sample_weight,
            time=hours,
            half_lives=self._half_lives(),
            reservoir_rows=self.recipe.settings.reservoir_rows,
        )
        return replace(self, model=model, opening=None, running=running)

    def _half_lives(self) -> tuple[float, ...]:
        chosen = self.recipe.settings.half_life
        if chosen == "auto":
            return HALF_LIVES
        return (np.inf if chosen == "never" else float(chosen),)

    def _gone_on(self, log: Log, running: RunningHeads, model: HarmonRank, hours: float) -> Self:
        encoder = model.encoder.grown(log.context, MOST_VALUES)
        if encoder.slots != model.encoder.slots:
            running = running.recoded(encoder.recoding(model.encoder), encoder.slots)
        running = running.learned(
            score_logit(log.scores),
            log.codes(encoder),
            log.known_labels(),
            log.sample_weight,
            hours,
        )
        fitted = model.fitted.grown(encoder, running.prevalence)
        if log.rows >= _REFERENCE_ROWS:
            fitted = replace(fitted, reference=fitted.reference_of(log), learned=None)
        newer = HarmonRank.assembled(model.schema, fitted, DefaultFit(running.heads))
        return replace(self, model=newer, running=running)

    def recalibrated(self, rows: Log) -> Self:
        """Return a learner for upstream models that have changed: their scores look like this."""
        if self.model is None:
            return self
        model = self.model.recalibrated(rows)
        if self.running is None:
            assert self.opening is not None
            moved = model.with_scores_of_now(self.opening, self.model)
            return replace(self, model=model, opening=moved)
        log = rows.counted()
        codes = log.codes(model.encoder)
        running = self.running.recalibrated(score_logit(log.scores), codes, log.sample_weight)
        return replace(self, model=model, running=running)

    def facts(self) -> dict[str, Any]:
        """Return how many rows it has learned, and how fast it forgets them."""
        facts: dict[str, Any] = {"learner": NAME, "learned_rows": self.learned_rows}
        if self.running is None:
            return facts
        half_life = self.running.half_life
        kept = len(self.running.reservoir.weight)
        hours = None if np.isinf(half_life) else float(half_life)
        return {**facts, "half_life_hours": hours, "reservoir_rows": kept}

    def save(self, folder: Path) -> None:
        """Write all of it into a folder that is not there yet."""
        running = self.running
        state = SumsState(self.learned_rows, None if running is None else state_of_running(running))
        write_learner(
            folder,
            NAME,
            self.recipe,
            msgspec.to_builtins(state),
            self.model,
            {_ROWS: self.opening},
            None if running is None else arrays_of_running(running),
        )

    @classmethod
    def load(cls, folder: Path, schema: Schema) -> Self:
        """Read what `save` wrote."""
        parts = read_learner(folder, schema, SumsState, _bounds)
        model, state = parts.model, parts.state
        if model is not None and not isinstance(model, HarmonRank):
            raise DataError(f"'{folder}' must hold a model of harmonrank. Got {model.name}.")
        running = None
        if state.running is not None:
            if model is None:
                raise DataError(f"'{folder}' has sums and no model; the learner is damaged.")
            running = running_of_arrays(folder / ARRAYS, state.running, model.state.heads)
        return cls(parts.recipe, model, parts.rows.get(_ROWS), running, state.learned_rows)


def _counted(rows: Log, model: HarmonRank) -> Log:
    """Return the rows that count, as if every place had been looked at, by the model's curve."""
    log = rows.aligned(replace(rows.schema, examination=model.schema.examination))
    return corrected(log).counted().with_unit_weights()


def _bounds(settings: LearnerSettings) -> dict[str, int]:
    return {_ROWS: settings.window_rows}
