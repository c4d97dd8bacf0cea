"""CommitRecord: the small facts of a commit, as JSON; rows and models lie beside them."""

__all__ = ["CommitRecord", "StepRecord", "TriedRecalibration"]

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harmonrank.streaming.join.join_saved import JoinRecord
from harmonrank.streaming.learners.learner import LearnerRecord
from harmonrank.streaming.scored_batch import ScoredBatch

Count = Annotated[int, Meta(ge=0, le=2**62)]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a record."""


class StepRecord(_Part, frozen=True):
    """An interval that is complete or closed, and still to be worked on."""

    kind: Literal["exposures", "batch"]
    start: datetime
    end: datetime


class TriedRecalibration(_Part, frozen=True):
    """A version that was recalibrated once because of these scores; it is not tried again."""

    version: Annotated[int, Meta(ge=1)]
    replaced: list[str]


class CommitRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a commit knows beside its parts.

    Attributes:
        offset: The position in the source; None at its beginning.
        events: Read so far.
        history: Length of the history, in bytes.
        seen: The newest version of this stream.
        published: Versions that became current.
        refused: Versions that did not.
        tried: The last recalibration of a current version.
        digest: Of the names of all rows that were learned, in their order.
        since: When the first interval that was learned began.
        until: When the last one ended.
        watched: The first interval whose exposures a model has seen.
        judged: Whether the guard rows have judged a model.
        replacements: Of upstream models, that the learner has not reached: their times.
        steps: What is to be done next, in order.
        quality: The newest scored batches.
        join: What its frames do not tell.
        learner: What its parts do not tell.
    """

    offset: dict[str, Any] | None = None
    events: Count = 0
    history: Count = 0
    seen: Count = 0
    published: Count = 0
    refused: Count = 0
    tried: TriedRecalibration | None = None
    digest: str = ""
    since: datetime | None = None
    until: datetime | None = None
    watched: datetime | None = None
    judged: bool = False
    replacements: list[datetime] = []
    steps: list[StepRecord] = []
    quality: list[ScoredBatch] = []
    join: JoinRecord = JoinRecord()
    learner: LearnerRecord = LearnerRecord()
