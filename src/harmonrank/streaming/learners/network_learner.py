"""NetworkLearner: goes on learning with the weights that it has, as the paper's service does.

It opens with a fit as soon as enough rows have come. After that every batch is learned by some
passes, twenty by default, over its rows and earlier ones beside them: without these, a network
forgets what the batch happens not to show. The earlier rows are an even sample of all that were
learned (`Replay`), bounded in number.

A loss of ranks leaves open where fused scores lie, and passes move them about. What is published
has the median and the width of the model before it, on the newest rows: the order of rows is the
network's, and whoever compares fused scores of two versions compares like with like.
"""

__all__ = ["NetworkLearner"]

from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log, Schema
from harmonrank.data.rows.kept_rows import concatenated, newest
from harmonrank.model.density.spread import Spread
from harmonrank.paper.methods.neural import NeuralMethod
from harmonrank.streaming.learners.learner_files import read_learner, write_learner
from harmonrank.streaming.learners.recent import RECENT, recent_rows
from harmonrank.streaming.learners.recipe import LearnerRecipe, LearnerSettings
from harmonrank.streaming.learners.replay import Replay
from harmonrank.support.errors import DataError

NAME = "network"
_WAITING, _REPLAY, _RECENT = "waiting", "replay", "recent"

Whole = Annotated[int, Meta(ge=0)]


class NetworkState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored of a learner beside its model and its rows."""

    learned_rows: Whole
    replayed: Whole
    scale: tuple[Annotated[float, Meta(gt=0, le=1e12)], Annotated[float, Meta(ge=-1e12, le=1e12)]]


@dataclass(frozen=True, eq=False)
class NetworkLearner:
    """Learns each batch together with a sample of what came before.

    Attributes:
        recipe: What is learned.
        replay: A sample of the rows that were learned.
        network: What goes on learning; None until the first fit.
        scale: Factor and shift from its fused score to the published one.
        waiting: Rows that wait for the first fit, the newest `window_rows` of them.
        recent: The newest rows that were learned, from which drift counts.
        learned_rows: How many rows it has ever learned.
    """

    recipe: LearnerRecipe
    replay: Replay
    network: NeuralMethod | None = None
    scale: tuple[float, float] = (1.0, 0.0)
    waiting: Log | None = field(default=None, repr=False)
    recent: Log | None = field(default=None, repr=False)
    learned_rows: int = 0

    @classmethod
    def begun(cls, recipe: LearnerRecipe) -> Self:
        """Return a learner that has learned nothing yet."""
        return cls(recipe, Replay(recipe.settings.replay_rows))

    @cached_property
    def model(self) -> NeuralMethod | None:
        """What it would publish."""
        return None if self.network is None else self.network.rescaled(*self.scale)

    def learned(self, rows: Log, *, seed: int, at: datetime) -> Self:  # noqa: ARG002
        """Return a learner whose network has made its passes over these rows."""
        if not rows.rows:
            return self
        counted = replace(self, learned_rows=self.learned_rows + rows.rows)
        if self.network is None or self.model is None:
            return counted._opened(rows, seed)
        settings = self.recipe.settings
        mixed = self.replay.mixed(rows, settings.replay_share, seed=seed)
        recent = recent_rows(self.recent, rows)
        network = self.network.updated(mixed, passes=settings.passes, seed=seed)
        return replace(
            counted,
            network=network.with_reference_of(recent),
            scale=_scale(network.score(recent), self.model.score(recent)),
            replay=self.replay.with_rows(rows, seed=seed),
            recent=recent,
        )

    def _opened(self, rows: Log, seed: int) -> Self:
        """Fit the first network, if the rows are enough for one."""
        waiting = concatenated([rows] if self.waiting is None else [self.waiting, rows])
        waiting = newest(waiting, self.recipe.settings.window_rows)
        if not self.recipe.is_enough(waiting):
            return replace(self, waiting=waiting)
        network = self.recipe.fitted(waiting, seed=seed)
        assert isinstance(network, NeuralMethod)
        replay = self.replay.with_rows(waiting, seed=seed)
        recent = recent_rows(None, waiting)
        return replace(self, network=network, waiting=None, replay=replay, recent=recent)

    def recalibrated(self, rows: Log) -> Self:
        """Return a learner that brings the new scores to where its network learned the old ones.

        Earlier rows get the scores that the new upstream models would give them.
        """
        if self.network is None or self.recent is None:
            return self
        before, network = self.network, self.network.recalibrated(rows)
        recent = network.with_scores_of_now(self.recent, before)
        replay = self.replay.recalibrated(network, before)
        return replace(self, network=network, replay=replay, recent=recent)

    def facts(self) -> dict[str, Any]:
        """Return how many rows it has learned, and how many it keeps."""
        kept = 0 if self.replay.rows is None else self.replay.rows.rows
        return {"learner": NAME, "learned_rows": self.learned_rows, "replay_rows": kept}

    def save(self, folder: Path) -> None:
        """Write all of it into a folder that is not there yet."""
        state = {
            "learned_rows": self.learned_rows,
            "replayed": self.replay.seen,
            "scale": self.scale,
        }
        rows = {_WAITING: self.waiting, _REPLAY: self.replay.rows, _RECENT: self.recent}
        write_learner(folder, NAME, self.recipe, state, self.network, rows)

    @classmethod
    def load(cls, folder: Path, schema: Schema) -> Self:
        """Read what `save` wrote."""
        parts = read_learner(folder, schema, NetworkState, _bounds)
        network, recipe, state = parts.model, parts.recipe, parts.state
        if network is not None and not isinstance(network, NeuralMethod):
            raise DataError(f"'{folder}' must hold a network. Got the method {network.name}.")
        replay = Replay(recipe.settings.replay_rows, state.replayed, parts.rows.get(_REPLAY))
        waiting, recent = (parts.rows.get(name) for name in (_WAITING, _RECENT))
        return cls(recipe, replay, network, state.scale, waiting, recent, state.learned_rows)


def _scale(fused: np.ndarray, before: np.ndarray) -> tuple[float, float]:
    """Return factor and shift that give fused scores the median and the width of others."""
    now, then = (Spread.of(scores[:, None]) for scores in (fused, before))
    known = now.width[0] > 0 and then.width[0] > 0
    factor = float(np.clip(then.width[0] / now.width[0], 1e-6, 1e6)) if known else 1.0
    return factor, float(then.middle[0]) - factor * float(now.middle[0])


def _bounds(settings: LearnerSettings) -> dict[str, int]:
    return {_WAITING: settings.window_rows, _REPLAY: settings.replay_rows, _RECENT: RECENT}
