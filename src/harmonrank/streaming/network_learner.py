"""NetworkLearner: goes on learning with the weights that it has, as the paper's service does.

It opens with a fit as soon as enough rows have come. After that every batch is learned by some
passes, twenty by default, over its rows and earlier ones beside them: without these, a network
forgets what the batch happens not to show. The earlier rows are an even sample of all that were
learned (`Replay`), bounded in number.
"""

__all__ = ["NetworkLearner"]

from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

from harmonrank.data import Log, Schema
from harmonrank.data.kept_rows import concatenated, newest
from harmonrank.errors import DataError
from harmonrank.methods.neural import NeuralMethod
from harmonrank.streaming.learner_files import read_learner, write_learner
from harmonrank.streaming.recent import RECENT, recent_rows
from harmonrank.streaming.recipe import LearnerRecipe, LearnerSettings
from harmonrank.streaming.replay import Replay

NAME = "network"
_WAITING, _REPLAY, _RECENT = "waiting", "replay", "recent"

Whole = Annotated[int, Meta(ge=0)]


class NetworkState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored of a learner beside its model and its rows."""

    learned_rows: Whole
    replayed: Whole


@dataclass(frozen=True, eq=False)
class NetworkLearner:
    """Learns each batch together with a sample of what came before.

    Attributes:
        recipe: What is learned.
        model: None until the first fit.
        waiting: Rows that wait for the first fit, the newest `window_rows` of them.
        replay: A sample of the rows that were learned.
        recent: The newest rows that were learned, from which drift counts.
        learned_rows: How many rows it has ever learned.
    """

    recipe: LearnerRecipe
    replay: Replay
    model: NeuralMethod | None = None
    waiting: Log | None = field(default=None, repr=False)
    recent: Log | None = field(default=None, repr=False)
    learned_rows: int = 0

    @classmethod
    def begun(cls, recipe: LearnerRecipe) -> Self:
        """Return a learner that has learned nothing yet."""
        return cls(recipe, Replay(recipe.settings.replay_rows))

    def learned(self, rows: Log, *, seed: int, at: datetime) -> Self:  # noqa: ARG002
        """Return a learner whose network has made its passes over these rows."""
        if not rows.rows:
            return self
        counted = replace(self, learned_rows=self.learned_rows + rows.rows)
        if self.model is None:
            return counted._opened(rows, seed)
        settings = self.recipe.settings
        mixed = self.replay.mixed(rows, settings.replay_share, seed=seed)
        recent = recent_rows(self.recent, rows)
        model = self.model.updated(mixed, passes=settings.passes, seed=seed)
        return replace(
            counted,
            model=model.with_reference_of(recent),
            replay=self.replay.with_rows(rows, seed=seed),
            recent=recent,
        )

    def _opened(self, rows: Log, seed: int) -> Self:
        """Fit the first network, if the rows are enough for one."""
        waiting = concatenated([rows] if self.waiting is None else [self.waiting, rows])
        waiting = newest(waiting, self.recipe.settings.window_rows)
        if not self.recipe.is_enough(waiting):
            return replace(self, waiting=waiting)
        model = self.recipe.fitted(waiting, seed=seed)
        assert isinstance(model, NeuralMethod)
        replay = self.replay.with_rows(waiting, seed=seed)
        recent = recent_rows(None, waiting)
        return replace(self, model=model, waiting=None, replay=replay, recent=recent)

    def recalibrated(self, rows: Log) -> Self:
        """Return a learner that brings the new scores to where its network learned the old ones.

        Earlier rows get the scores that the new upstream models would give them.
        """
        if self.model is None or self.recent is None:
            return self
        before, model = self.model, self.model.recalibrated(rows)
        recent = model.with_scores_of_now(self.recent, before)
        replay = self.replay.recalibrated(model, before)
        return replace(self, model=model, replay=replay, recent=recent)

    def facts(self) -> dict[str, Any]:
        """Return how many rows it has learned, and how many it keeps."""
        kept = 0 if self.replay.rows is None else self.replay.rows.rows
        return {"learner": NAME, "learned_rows": self.learned_rows, "replay_rows": kept}

    def save(self, folder: Path) -> None:
        """Write all of it into a folder that is not there yet."""
        state = {"learned_rows": self.learned_rows, "replayed": self.replay.seen}
        rows = {_WAITING: self.waiting, _REPLAY: self.replay.rows, _RECENT: self.recent}
        write_learner(folder, NAME, self.recipe, state, self.model, rows)

    @classmethod
    def load(cls, folder: Path, schema: Schema) -> Self:
        """Read what `save` wrote."""
        parts = read_learner(folder, schema, NetworkState, _bounds)
        model, recipe = parts.model, parts.recipe
        if model is not None and not isinstance(model, NeuralMethod):
            raise DataError(f"'{folder}' must hold a network. Got the method {model.name}.")
        replay = Replay(recipe.settings.replay_rows, parts.state.replayed, parts.rows.get(_REPLAY))
        waiting, recent = (parts.rows.get(name) for name in (_WAITING, _RECENT))
        return cls(recipe, replay, model, waiting, recent, parts.state.learned_rows)


def _bounds(settings: LearnerSettings) -> dict[str, int]:
    return {_WAITING: settings.window_rows, _REPLAY: settings.replay_rows, _RECENT: RECENT}
