"""StreamConfig: what decides the results of a stream, and how its loop runs."""

__all__ = ["LoopConfig", "StreamConfig"]

from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Literal

from msgspec import Meta

from harmonrank.streaming.join.windows import Windows
from harmonrank.streaming.learners.recipe import LearnerSettings
from harmonrank.support.options import Count, Nonnegative, Positive, Seconds, Share, check_fields

Whole = Annotated[int, Meta(ge=0, le=2**32 - 1)]


@dataclass(frozen=True, kw_only=True)
class StreamConfig:
    """Settings that decide what a stream learns and publishes; they are kept with its state.

    Attributes:
        method: A name of the catalogue.
        options: Of the method.
        learner: How it learns from batches.
        every: Seconds of an interval.
        lateness: Seconds that the watermark stays behind the newest event.
        window: Seconds after an exposure in which feedback counts.
        windows: The same for single objectives.
        guard_share: Share of the requests whose rows judge a model before they are learned.
        guard_rows: At most so many rows wait to judge a model; older ones are learned.
        quality_batches: The sliding window of the prequential AUC, in batches.
        seed: Decides everything that is drawn.
    """

    method: str = "harmonrank"
    options: dict[str, Any] = field(default_factory=dict)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    every: Positive = 3600.0
    lateness: Nonnegative = 300.0
    window: Nonnegative = 3600.0
    windows: dict[str, Nonnegative] = field(default_factory=dict)
    guard_share: Share = 0.2
    guard_rows: Count = 200_000
    quality_batches: Count = 24
    seed: Whole = 0

    def __post_init__(self) -> None:
        check_fields("A stream", self)
        self.waits()

    def waits(self) -> Windows:
        """Return how time is cut into intervals, and how long each waits."""
        return Windows(
            every=timedelta(seconds=self.every),
            lateness=timedelta(seconds=self.lateness),
            wait={name: timedelta(seconds=wait) for name, wait in self.windows.items()},
            otherwise=timedelta(seconds=self.window),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """How the loop of a stream runs; none of it changes what comes out.

    Attributes:
        once: Stop when nothing is left to read.
        publish: After each batch and each replacement of an upstream model, or the last model only.
        most: Events of a chunk.
        commit_seconds: State is committed after every batch, and at least so often.
        poll_seconds: How long to wait before a source that had nothing is asked again.
        first_pause: Seconds until something that failed is tried again; each further pause is
            twice as long.
        longest_pause: Of these.
        patience: Seconds until the stream gives up and stops with the reason; null never does.
    """

    once: bool = False
    publish: Literal["each", "last"] = "each"
    most: Count = 100_000
    commit_seconds: Positive = 30.0
    poll_seconds: Seconds = 0.5
    first_pause: Positive = 0.5
    longest_pause: Positive = 60.0
    patience: Seconds | None = None

    def __post_init__(self) -> None:
        check_fields("A stream", self)
