"""Loop events: what the loop of a stream reports as it goes.

The terminal, JSON lines, metrics and the history are its consumers. Each is a JSON object with the
tag `event`; those of the history are read back as the types below.
"""

__all__ = [
    "BatchLearned",
    "EventsRead",
    "HistoryRecord",
    "IntervalCompleted",
    "LoopEvent",
    "Publication",
    "QualityFacts",
    "RetryPlanned",
    "ScoreMove",
    "SourceNoted",
    "StateCommitted",
    "StreamStarted",
    "StreamStopped",
]

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0)]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of an event."""


class _Event(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", kw_only=True
):
    """What all of them share."""


class Publication(_Part, frozen=True):
    """What the registry said to a candidate.

    Attributes:
        version: Its number.
        refused: Why it did not become current; None if it did.
        recalibrated: Whether it is the version before it, recalibrated without labels.
    """

    version: Annotated[int, Meta(ge=1)]
    refused: str | None
    recalibrated: bool = False


class ScoreMove(_Part, frozen=True):
    """Where one score is now, compared with what the model has learned from.

    Attributes:
        offset: Change of the median given the context, in standard deviations.
        scale: Spread over that of the fit.
        verdict: One word or two.
        psi: Population stability index against the batch that was learned last.
    """

    offset: float
    scale: float
    verdict: str
    psi: float | None = None


class QualityFacts(_Part, frozen=True):
    """How well rows were ranked by models that had not learned them.

    Attributes:
        batches: How many were scored.
        rows: Of them.
        auc: By objective; None where there was one class only.
        auc_ci: The intervals.
        auc_sum: The weighted sum.
        ci: Its interval.
        exact_auc: By true probabilities, where they are known.
        exact_auc_sum: Their weighted sum.
        ceiling: The best possible one.
        requests: The same within requests, whose order is all that a ranking decides; None where no
            request has both labels, and in records of releases that did not measure it.
    """

    batches: Count
    rows: Count
    auc: dict[str, float | None]
    auc_ci: dict[str, tuple[float | None, float | None]]
    auc_sum: float | None
    ci: tuple[float | None, float | None]
    exact_auc: dict[str, float | None] | None = None
    exact_auc_sum: float | None = None
    ceiling: float | None = None
    requests: "QualityFacts | None" = None


class StreamStarted(_Event, frozen=True, tag="started"):
    """The loop begins, or goes on from a commit.

    Attributes:
        stream: The identity of this stream, which the notes of its versions carry.
        commit: Of the state; 0 of a new one.
        events: Read so far.
        learned_rows: Learned so far.
        published: Versions that became current.
        refused: Versions that did not.
        swept: How many leftovers of a killed run were removed.
    """

    stream: str
    method: str
    objectives: list[str]
    commit: Count = 0
    events: Count = 0
    learned_rows: Count = 0
    published: Count = 0
    refused: Count = 0
    swept: Count = 0


class EventsRead(_Event, frozen=True, tag="read"):
    """A chunk of events was joined.

    Attributes:
        events: In this chunk.
        total: Since the stream began.
        waiting: Events, or files, that are known to wait in the source.
        watermark: Nothing older than this is expected any more.
        lag_seconds: From the newest event to now.
        aside: Events that were set aside since the stream began, by reason.
    """

    events: Count
    total: Count
    waiting: Count | None
    watermark: datetime | None
    lag_seconds: float | None
    aside: dict[str, Count]


class SourceNoted(_Event, frozen=True, tag="note"):
    """The source has something to say, such as a file that cannot be read."""

    text: str


class IntervalCompleted(_Event, frozen=True, tag="interval"):
    """All exposures of an interval are known, their labels not yet.

    Attributes:
        moves: By score column; empty while there is no model.
        replaced: Scores that moved as if their upstream models were replaced.
        evidence: Why these, or why none.
        version: The current version, recalibrated on these exposures, if it had to be.
    """

    start: datetime
    end: datetime
    rows: Count
    moves: dict[str, ScoreMove] = {}
    replaced: list[str] = []
    evidence: list[str] = []
    version: Publication | None = None


class BatchLearned(_Event, frozen=True, tag="batch"):
    """The labels of an interval are known: its rows were scored, then learned.

    Attributes:
        rows: Of the interval.
        learned: Rows learned now: those that judged the model before, and those that do not judge.
        learned_rows: Since the stream began.
        guard_rows: That wait to be learned until they have judged a model.
        positives: Of the interval, by objective.
        window: Prequential quality over the sliding window; None before there was a model.
        batch: The same of these rows alone.
        version: What came of the candidate, if there was one.
        held: Why there was none.
        learner: Facts of the learner, such as a half-life.
        lag_seconds: From the newest event to now.
        rows_per_second: Joined, scored and learned, without the time in which nothing was there.
        aside: Events that were set aside since the stream began, by reason.
    """

    start: datetime
    end: datetime
    rows: Count
    learned: Count
    learned_rows: Count
    guard_rows: Count
    positives: dict[str, Count]
    window: QualityFacts | None
    batch: QualityFacts | None
    version: Publication | None
    held: str | None
    learner: dict[str, Any]
    lag_seconds: float | None
    rows_per_second: float | None
    aside: dict[str, Count]


class StateCommitted(_Event, frozen=True, tag="commit"):
    """All that came of the events so far is on the disk."""

    commit: Count
    seconds: float


class RetryPlanned(_Event, frozen=True, tag="retry"):
    """Something failed that may go well later; nothing is lost meanwhile.

    Attributes:
        what: The source, the registry or the state.
        reason: In a sentence.
        seconds: Until it is tried again.
    """

    what: str
    reason: str
    seconds: float


class StreamStopped(_Event, frozen=True, tag="stopped"):
    """The loop has ended.

    Attributes:
        why: In a sentence.
        commit: Of the state that the next start goes on from.
        version: What came of the model, if it was to be published at the end only.
    """

    why: str
    commit: Count
    learned_rows: Count
    version: Publication | None = None


HistoryRecord = IntervalCompleted | BatchLearned
"""What the history of a stream keeps."""

_Progress = EventsRead | SourceNoted | StateCommitted | RetryPlanned
LoopEvent = StreamStarted | HistoryRecord | _Progress | StreamStopped
"""Any of them."""
