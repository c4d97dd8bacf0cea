"""Stream learner: takes batches of labelled rows and has a model to publish.

A learner is a value: `learned` and `recalibrated` return another one and leave this one as it is.
What it is after a stream depends on the batches, their order and the seeds alone, so that a replay
gives the same model to the bit, and so does a learner that was saved and loaded in between.

It fits its method afresh on the newest rows. A method that can goes on from such a fit at the cost
of the new rows alone: the default by sums, a network from its weights (`Continuation`).
"""

__all__ = ["LearnerRecipe", "LearnerRecord", "StreamLearner", "looked_at", "new_learner"]

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, Self

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log, Schema
from harmonrank.data.rows.kept_rows import concatenated, newest, read_rows, unlabelled
from harmonrank.fusion import Method, load, method_class
from harmonrank.fusion.method import changed
from harmonrank.fusion.position import corrected
from harmonrank.streaming.config import LearnerSettings
from harmonrank.streaming.state.commits import Commits
from harmonrank.support.extras import require_extra

RECENT = 20_000
"""How many of the newest rows drift counts from, as what a learner has followed is no drift."""

# With so many requests, a tenth of them can be set aside for validation whatever they hold: a
# request that has all rows of a class, of which there are two per objective, has to stay.
_REQUESTS, _REQUESTS_PER_OBJECTIVE = 10, 20
_MODEL, _WINDOW = "model", "window.parquet"


class Continuation(Protocol):
    """What goes on learning after a fit; a value, as a learner is."""

    kind: ClassVar[str]

    @property
    def model(self) -> Method:
        """What it would publish."""

    def learned(self, rows: Log, *, seed: int, at: datetime) -> Self:
        """Return it after these labelled rows."""

    def recalibrated(self, rows: Log) -> Self:
        """Return it for upstream models that have changed: their scores now look like this."""

    def facts(self) -> dict[str, Any]:
        """Return small facts for the history of a stream, as JSON parts."""

    def record(self) -> Any:
        """Return what its parts do not tell, as JSON parts."""

    def parts(self) -> dict[str, Any]:
        """Return the parts of a commit."""


@dataclass(frozen=True)
class LearnerRecipe:
    """A method with its options, the columns it reads, and the settings of its learner."""

    method: str
    options: Mapping[str, Any]
    schema: Schema
    settings: LearnerSettings

    @property
    def continuation(self) -> Any:
        """The class of what goes on; None for a method that is fitted afresh each time."""
        if self.method == "harmonrank":
            from harmonrank.streaming.learners.sums import Sums

            return Sums
        # Only these can go on from their weights.
        if hasattr(method_class(self.method), "updated"):
            from harmonrank.streaming.learners.network import NetworkContinuation

            return NetworkContinuation
        return None

    @property
    def learner(self) -> str:
        """How the method goes on: by 'sums', as a 'network', or fitted afresh on a 'window'."""
        return "window" if self.continuation is None else self.continuation.kind

    def fitted(self, log: Log, *, seed: int) -> Method:
        """Return the method, fitted on these rows."""
        return method_class(self.method)(**self.options).fit(log, self.schema, seed=seed)

    def is_enough(self, log: Log) -> bool:
        """Tell whether a first model can be fitted on these rows.

        Each objective has both classes, each score has come at least once, and some requests can be
        set aside for validation.
        """
        requests = log.rows if log.request is None else len(np.unique(log.request))
        if log.rows < self.settings.first_rows:
            return False
        if requests < _REQUESTS + _REQUESTS_PER_OBJECTIVE * len(self.schema.names):
            return False
        counted = log.counted()
        labels = counted.known_labels()
        both = bool(counted.rows and (labels.max(axis=0) > labels.min(axis=0)).all())
        return both and bool((counted.missing() < counted.rows).all())


class LearnerRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a commit knows of a learner beside its parts."""

    learned_rows: Annotated[int, Meta(ge=0)] = 0
    continuation: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class StreamLearner:
    """Learns a method from batches.

    Rows in which an objective has one class only give no fit: the model stays the last one.

    Attributes:
        recipe: What is learned.
        fitted: The model of the last fit; None before both classes of every objective have come.
        window: The newest rows, oldest first, as long as it is fitted afresh.
        continuation: What goes on from the last fit; then there is no window.
        learned_rows: How many rows it has ever learned.
    """

    recipe: LearnerRecipe
    fitted: Method | None = None
    window: Log | None = field(default=None, repr=False)
    continuation: Continuation | None = None
    learned_rows: int = 0

    @property
    def model(self) -> Method | None:
        """What it would publish."""
        return self.fitted if self.continuation is None else self.continuation.model

    def learned(self, rows: Log, *, seed: int, at: datetime) -> Self:
        """Return a learner that has learned from these labelled rows too.

        Args:
            rows: Of one batch, in the order in which they came.
            seed: Decides everything that is drawn.
            at: The end of the batch's interval: how old what was learned before has become.
        """
        if not rows.rows:
            return self
        counted = replace(self, learned_rows=self.learned_rows + rows.rows)
        if self.continuation is not None:
            return replace(counted, continuation=self.continuation.learned(rows, seed=seed, at=at))
        window = concatenated([rows] if self.window is None else [self.window, rows])
        window = newest(window, self.recipe.settings.window_rows)
        if not self.recipe.is_enough(window):
            return replace(counted, window=window)
        model, kind = self.recipe.fitted(window, seed=seed), self.recipe.continuation
        if kind is None:
            recent = newest(window, max(rows.rows, RECENT)).sampled(RECENT)
            fitted = model.fitted.referred_to(unlabelled(recent).counted())
            return replace(counted, fitted=changed(model, fitted=fitted), window=window)
        begun = kind.begun(model, window, self.recipe.settings, seed=seed, at=at)
        if begun is None:
            return replace(counted, fitted=model, window=window)
        return replace(counted, fitted=None, window=None, continuation=begun)

    def recalibrated(self, rows: Log) -> Self:
        """Return a learner for upstream models that have changed: their scores now look like this.

        It is called before rows with the new scores are learned, with at least 1,000 rows. Labels
        are not needed. Its earlier rows get the scores that the new upstream models would give, so
        that it goes on with rows of one kind. Without a model it knows of no change.
        """
        if self.continuation is not None:
            return replace(self, continuation=self.continuation.recalibrated(rows))
        if self.fitted is None or self.window is None:
            return self
        model = self.fitted.recalibrated(rows, scores="all")
        window = model.fitted.scores_of_now(self.window, self.fitted.fitted)
        return replace(self, fitted=model, window=window)

    def facts(self) -> dict[str, Any]:
        """Return small facts for the history of a stream, as JSON parts."""
        facts = {"learner": self.recipe.learner, "learned_rows": self.learned_rows}
        if self.continuation is not None:
            return facts | self.continuation.facts()
        kept = 0 if self.window is None else self.window.rows
        return facts | ({} if self.recipe.continuation else {"window_rows": kept})

    def record(self) -> LearnerRecord:
        """Return what its parts do not tell."""
        going = self.continuation
        return LearnerRecord(self.learned_rows, None if going is None else going.record())

    def parts(self) -> dict[str, Any]:
        """Return the parts of a commit."""
        going = {} if self.continuation is None else self.continuation.parts()
        return {_MODEL: self.fitted, _WINDOW: self.window} | going

    @classmethod
    def restored(cls, recipe: LearnerRecipe, record: LearnerRecord, commits: Commits) -> Self:
        """Return the learner of a commit.

        Raises:
            DataError: Its parts are not those of such a learner.
        """
        if record.continuation is not None and recipe.continuation is not None:
            going = recipe.continuation.restored(record.continuation, recipe, commits)
            return cls(recipe, continuation=going, learned_rows=record.learned_rows)

        def read(path: Path) -> Log:
            return read_rows(path, recipe.schema, recipe.settings.window_rows)

        fitted, window = commits.find(_MODEL, load), commits.find(_WINDOW, read)
        return cls(recipe, fitted, window, learned_rows=record.learned_rows)


def new_learner(
    method: str, options: Mapping[str, Any], schema: Schema, settings: LearnerSettings | None = None
) -> StreamLearner:
    """Return a learner that has learned nothing yet.

    Args:
        method: The name of a method, which decides how it goes on (docs/streaming.md).
        options: Of the method.
        schema: Which column is what.
        settings: Of the learner.
    """
    kind = method_class(method)
    if kind.traits.needs is not None:
        require_extra(kind.traits.needs, who=method)
    kind(**options)  # refuses options that the method does not have
    return StreamLearner(LearnerRecipe(method, options, schema, settings or LearnerSettings()))


def looked_at(rows: Log, model: Method) -> Log:
    """Return rows that count as if every place had been looked at, by the curve of a model."""
    return corrected(rows.aligned(replace(rows.schema, examination=model.schema.examination)))
