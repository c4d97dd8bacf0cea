"""Config of a stream: how long it waits, how it learns, and how its loop runs."""

__all__ = ["LearnerSettings", "LoopConfig", "StreamConfig", "Windows", "parse_duration"]

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Literal

from msgspec import Meta

from harmonrank.support.errors import UsageError, refuse_unknown, shown
from harmonrank.support.options import Count, Positive, Seconds, Share, check_fields

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LONGEST = 366 * 86_400

Wait = Annotated[float, Meta(ge=0, le=_LONGEST)]
Whole = Annotated[int, Meta(ge=0, le=2**32 - 1)]


@dataclass(frozen=True, kw_only=True)
class Windows:
    """How time is cut into intervals, and how long each waits for what belongs to it.

    >>> windows = Windows(windows={"buy": 86_400})
    >>> windows.of("buy"), windows.of("like")
    (86400.0, 3600.0)

    Attributes:
        every: Length of an interval in seconds; intervals begin at its multiples since 1970, UTC.
        lateness: How many seconds the watermark stays behind the newest event.
        window: For how many seconds after an exposure feedback counts.
        windows: The same for single objectives.
    """

    every: Annotated[float, Meta(ge=1, le=_LONGEST)] = 3600.0
    lateness: Wait = 300.0
    window: Wait = 3600.0
    windows: dict[str, Wait] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields("A stream", self)

    def of(self, objective: str) -> float:
        """Return how many seconds after an exposure feedback on an objective counts."""
        return self.windows.get(objective, self.window)

    def longest(self, objectives: Iterable[str]) -> float:
        """Return the longest wait, after which the labels of an interval are known.

        Raises:
            UsageError: A window is given for an objective that there is not.
        """
        known = list(objectives)
        sentence = "There is a window for '{}', which is no objective."
        refuse_unknown(self.windows, known, sentence)
        return max(self.of(name) for name in known)


def parse_duration(text: str, option: str) -> timedelta:
    """Read '90s', '5m', '1h', '1.5h' or '2d'.

    >>> parse_duration("24h", "--window")
    datetime.timedelta(days=1)
    """
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)([smhd])", text.strip())
    if match is None:
        raise UsageError(
            f"{option} must be a number with s, m, h or d, as in 90s, 5m, 1h or 2d. "
            f"Got {shown(text)}."
        )
    return timedelta(**{_UNITS[match[2]]: float(match[1])})


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """How a learner learns, whichever method it is of.

    Attributes:
        window_rows: On how many of the newest rows a method is fitted that is fitted afresh.
        passes: How often a network sees the rows of a batch.
        replay_rows: How many earlier rows are kept for a network, drawn evenly from all.
        replay_share: Share of earlier rows among those that a network learns from.
        first_rows: How many rows must have come before there is a model.
        opening_rows: Until so many rows have come, the default is fitted afresh on all of them;
            after that it goes on by sums.
        reservoir_rows: How many rows are kept for the residual of the default.
        half_life: After how many hours what the default has learned counts half; 'auto' lets the
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


@dataclass(frozen=True, kw_only=True)
class StreamConfig(Windows):
    """Settings that decide what a stream learns and publishes; they are kept with its state.

    Attributes:
        method: A name of the catalogue.
        options: Of the method.
        learner: How it learns from batches.
        guard_share: Share of the requests whose rows judge a model before they are learned.
        guard_rows: Most rows that wait to judge a model; of more, the oldest are learned.
        quality_batches: Length of the sliding window of the prequential AUC, in batches.
        seed: Decides everything that is drawn.
    """

    method: str = "harmonrank"
    options: dict[str, Any] = field(default_factory=dict)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    guard_share: Share = 0.2
    guard_rows: Count = 200_000
    quality_batches: Count = 24
    seed: Whole = 0


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """How the loop of a stream runs; none of it changes what comes out.

    Attributes:
        once: Stop when nothing is left to read.
        publish: After each batch and each replacement of an upstream model, or the last model only.
        most: Most events of a chunk.
        commit_seconds: Longest time between two commits; every batch is committed too.
        poll_seconds: How long to wait before a source that had nothing is asked again.
        first_pause: Seconds until something that failed is tried again; each further pause is
            twice as long.
        longest_pause: The longest of these pauses.
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
