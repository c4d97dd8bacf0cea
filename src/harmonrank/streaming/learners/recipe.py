"""Recipe: what a learner is to learn, and how."""

__all__ = ["LearnerRecipe", "LearnerSettings"]

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from harmonrank.data import Log, Schema
from harmonrank.fusion import Method, method_class
from harmonrank.support.options import Count, Share, check_fields

# With so many requests, a tenth of them can be set aside for validation whatever they hold: a
# request that has all rows of a class, of which there are two per objective, has to stay.
_REQUESTS, _REQUESTS_PER_OBJECTIVE = 10, 20


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """How a learner learns, whichever it is.

    Attributes:
        window_rows: A method that is fitted afresh is fitted on so many of the newest rows.
        passes: How often a network sees the rows of a batch.
        replay_rows: So many earlier rows are kept for a network, drawn evenly from all.
        replay_share: What part of the rows that a network learns from are earlier ones.
        first_rows: There is no model before so many rows have come.
        opening_rows: The default is fitted afresh on all rows until so many have come, and goes on
            by sums from there.
        reservoir_rows: So many rows are kept for the residual of the default.
        half_life: After so many hours what the default has learned counts half; 'auto' lets the
            likelihood of rows not yet learned choose, 'never' forgets nothing.
    """

    window_rows: Count = 1_000_000
    passes: Annotated[int, Meta(ge=1, le=10_000)] = 20
    replay_rows: Count = 100_000
    replay_share: Share = 0.5
    first_rows: Count = 1_000
    opening_rows: Count = 100_000
    reservoir_rows: Count = 300_000
    half_life: Literal["auto", "never"] | Annotated[float, Meta(gt=0, le=1e6)] = "auto"

    def __post_init__(self) -> None:
        check_fields("A learner", self)


@dataclass(frozen=True)
class LearnerRecipe:
    """A method with its options, the columns it reads, and the settings of its learner."""

    method: str
    options: Mapping[str, Any]
    schema: Schema
    settings: LearnerSettings

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
        weight = log.sample_weight
        counted = log if weight is None else log.take(np.flatnonzero(weight))
        labels = counted.known_labels()
        both = bool(counted.rows and (labels.max(axis=0) > labels.min(axis=0)).all())
        return both and bool((counted.missing() < counted.rows).all())
