"""Stream learner: what takes batches of labelled rows and has a model to publish.

A learner is a value: `learned` and `recalibrated` return another one and leave this one as it is.
What it is after a stream depends on the batches, their order and the seeds alone, so that a replay
gives the same model to the bit, and so does a learner that was saved and loaded in between.
"""

__all__ = ["LearnerSettings", "StreamLearner", "load_learner", "new_learner"]

from collections.abc import Mapping
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, Self

from harmonrank.data import Log, Schema
from harmonrank.fusion import Method, method_class
from harmonrank.streaming.learners.learner_files import read_header
from harmonrank.streaming.learners.recipe import LearnerRecipe, LearnerSettings
from harmonrank.support.errors import DataError, did_you_mean
from harmonrank.support.extras import require_extra

_PLACES = {
    "network": ("network_learner", "NetworkLearner"),
    "sums": ("sums_learner", "SumsLearner"),
    "window": ("window_learner", "WindowLearner"),
}
"""Where each learner is."""


class StreamLearner(Protocol):
    """Learns from batches, and has a model once enough rows have come."""

    @property
    def model(self) -> Method | None:
        """What it would publish; None before both classes of every objective have come."""

    def learned(self, rows: Log, *, seed: int, at: datetime) -> Self:
        """Return a learner that has learned from these labelled rows too.

        Args:
            rows: Of one batch, in the order in which they came.
            seed: Decides everything that is drawn.
            at: The end of the batch's interval: how old what was learned before has become.
        """

    def recalibrated(self, rows: Log) -> Self:
        """Return a learner for upstream models that have changed: their scores now look like this.

        It is called before rows with the new scores are learned, with at least 1,000 rows. Labels
        are not needed. A learner without a model knows of no change, and stays as it is.
        """

    def facts(self) -> dict[str, Any]:
        """Return small facts for the history of a stream, as JSON parts."""

    def save(self, folder: Path) -> None:
        """Write all of it into a folder that is not there yet."""


def new_learner(
    method: str,
    options: Mapping[str, Any],
    schema: Schema,
    settings: LearnerSettings | None = None,
) -> StreamLearner:
    """Return a learner that has learned nothing yet.

    Args:
        method: The name of a method, which decides what learns it (docs/streaming.md).
        options: Of the method.
        schema: Which column is what.
        settings: Of the learner.
    """
    kind = method_class(method)
    if kind.traits.needs is not None:
        require_extra(kind.traits.needs, who=method)
    kind(**options)  # refuses options that the method does not have
    recipe = LearnerRecipe(method, dict(options), schema, settings or LearnerSettings())
    learner: StreamLearner = _class_of(_learner_of(kind)).begun(recipe)
    return learner


def load_learner(folder: Path, schema: Schema) -> StreamLearner:
    """Read what a learner saved.

    Raises:
        DataError: The folder holds no learner of this schema, or a damaged one.
        ModelFileError: It was written in another format, or its model is damaged.
    """
    name = read_header(folder)
    if name not in _PLACES:
        raise DataError(
            f"'{folder}' holds an unknown learner '{name}'. {did_you_mean(name, _PLACES)}"
        )
    learner: StreamLearner = _class_of(name).load(folder, schema)
    return learner


def _learner_of(kind: type[Method]) -> str:
    """Return the name of the learner that a method has."""
    if kind.name == "harmonrank":
        return "sums"
    # Only these can go on from their weights. `harmonrank-network` cannot: its heads are shrunk
    # towards the closed form of the rows of its fit, so that it is fitted afresh.
    return "network" if hasattr(kind, "updated") else "window"


def _class_of(name: str) -> Any:
    module, attribute = _PLACES[name]
    return getattr(import_module(f"harmonrank.streaming.learners.{module}"), attribute)
