"""WindowLearner: fits any method afresh on its newest rows."""

__all__ = ["WindowLearner"]

from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

from harmonrank.data import Log, Schema
from harmonrank.data.rows.kept_rows import concatenated, newest, unlabelled
from harmonrank.fusion import Method
from harmonrank.streaming.learners.learner_files import read_learner, write_learner
from harmonrank.streaming.learners.recent import RECENT
from harmonrank.streaming.learners.recipe import LearnerRecipe, LearnerSettings

NAME = "window"
_ROWS = "window"


class WindowState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored of a learner beside its model and its rows."""

    learned_rows: Annotated[int, Meta(ge=0)]


@dataclass(frozen=True, eq=False)
class WindowLearner:
    """Keeps the newest rows, at most `window_rows`, and fits the method on all of them.

    A window in which an objective has one class only gives no fit: the model stays the last one.

    Attributes:
        recipe: What is learned.
        model: Of the last fit.
        window: The rows it keeps, oldest first.
        learned_rows: How many rows it has ever learned.
    """

    recipe: LearnerRecipe
    model: Method | None = None
    window: Log | None = field(default=None, repr=False)
    learned_rows: int = 0

    @classmethod
    def begun(cls, recipe: LearnerRecipe) -> Self:
        """Return a learner that has learned nothing yet."""
        return cls(recipe)

    def learned(self, rows: Log, *, seed: int, at: datetime) -> Self:  # noqa: ARG002
        """Return a learner whose method was fitted on the newest rows, these included."""
        if not rows.rows:
            return self
        window = concatenated([rows] if self.window is None else [self.window, rows])
        window = newest(window, self.recipe.settings.window_rows)
        learned = replace(self, window=window, learned_rows=self.learned_rows + rows.rows)
        if not self.recipe.is_enough(window):
            return learned
        recent = unlabelled(newest(window, max(rows.rows, RECENT)).sampled(RECENT))
        model = self.recipe.fitted(window, seed=seed).with_reference_of(recent)
        return replace(learned, model=model)

    def recalibrated(self, rows: Log) -> Self:
        """Return a learner whose rows have the scores that the new upstream models would give.

        So the next fit finds rows of one kind, though some are older than the change.
        """
        if self.model is None or self.window is None:
            return self
        model = self.model.recalibrated(rows)
        return replace(self, model=model, window=model.with_scores_of_now(self.window, self.model))

    def facts(self) -> dict[str, Any]:
        """Return how many rows it has learned, and how many it keeps."""
        kept = 0 if self.window is None else self.window.rows
        return {"learner": NAME, "learned_rows": self.learned_rows, "window_rows": kept}

    def save(self, folder: Path) -> None:
        """Write all of it into a folder that is not there yet."""
        state = {"learned_rows": self.learned_rows}
        write_learner(folder, NAME, self.recipe, state, self.model, {_ROWS: self.window})

    @classmethod
    def load(cls, folder: Path, schema: Schema) -> Self:
        """Read what `save` wrote."""
        parts = read_learner(folder, schema, WindowState, _bounds)
        return cls(parts.recipe, parts.model, parts.rows.get(_ROWS), parts.state.learned_rows)


def _bounds(settings: LearnerSettings) -> dict[str, int]:
    return {_ROWS: settings.window_rows}
