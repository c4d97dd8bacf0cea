"""Streaming: from events of exposures and feedback to published versions, exactly once."""

from harmonrank.streaming.config import LearnerSettings, LoopConfig, StreamConfig, Windows
from harmonrank.streaming.join.intervals import Batch, Exposures
from harmonrank.streaming.join.join import Join
from harmonrank.streaming.learners.learner import StreamLearner, new_learner
from harmonrank.streaming.learners.prequential import Prequential
from harmonrank.streaming.loop_events import BatchLearned, IntervalCompleted, LoopEvent
from harmonrank.streaming.sources.event_reading import AHEAD
from harmonrank.streaming.sources.events import EventForm
from harmonrank.streaming.sources.source import (
    EventChunk,
    EventSink,
    EventSource,
    Period,
    open_sink,
    open_source,
)
from harmonrank.streaming.state.files import read_history, read_identity
from harmonrank.streaming.stream import stream

__all__ = [
    "AHEAD",
    "Batch",
    "BatchLearned",
    "EventChunk",
    "EventForm",
    "EventSink",
    "EventSource",
    "Exposures",
    "IntervalCompleted",
    "Join",
    "LearnerSettings",
    "LoopConfig",
    "LoopEvent",
    "Period",
    "Prequential",
    "StreamConfig",
    "StreamLearner",
    "Windows",
    "new_learner",
    "open_sink",
    "open_source",
    "read_history",
    "read_identity",
    "stream",
]
