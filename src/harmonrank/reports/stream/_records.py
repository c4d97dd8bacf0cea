"""Records: what a page shows of a stream's history, whoever keeps it.

A stream writes such records and reads them back (`harmonrank.streaming.state.history`). Reports and
streams do not know each other, so this is what one may expect of the other.
"""

__all__ = ["BatchRecord", "IntervalRecord", "QualityRecord", "StreamHistory", "VersionRecord"]

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol, Self

End = float | None


class VersionRecord(Protocol):
    """What a registry said to a model."""

    @property
    def version(self) -> int:
        """Its number."""

    @property
    def refused(self) -> str | None:
        """Why it did not become current; None if it did."""

    @property
    def recalibrated(self) -> bool:
        """Whether it is the version before it, recalibrated without labels."""


class MoveRecord(Protocol):
    """Where one score is, compared with what the model has learned from."""

    @property
    def offset(self) -> float:
        """Change of the median given the context, in standard deviations."""

    @property
    def scale(self) -> float:
        """Spread over that of before."""

    @property
    def psi(self) -> float | None:
        """Population stability index."""


class QualityRecord(Protocol):
    """How well rows were ranked by models that had not learned them; None is not known."""

    @property
    def auc(self) -> Mapping[str, End]:
        """By objective."""

    @property
    def auc_ci(self) -> Mapping[str, tuple[End, End]]:
        """Its intervals."""

    @property
    def auc_sum(self) -> End:
        """Their weighted sum."""

    @property
    def ci(self) -> tuple[End, End]:
        """Its interval."""

    @property
    def exact_auc(self) -> Mapping[str, End] | None:
        """By true probabilities."""

    @property
    def exact_auc_sum(self) -> End:
        """Their weighted sum."""

    @property
    def ceiling(self) -> End:
        """The best possible one."""


class IntervalRecord(Protocol):
    """Exposures of an interval, before anything is known of their labels."""

    @property
    def end(self) -> datetime:
        """Of the interval."""

    @property
    def moves(self) -> Mapping[str, MoveRecord]:
        """By score column."""

    @property
    def replaced(self) -> Sequence[str]:
        """Scores that moved as if their upstream models were replaced."""

    @property
    def evidence(self) -> Sequence[str]:
        """Why these, or why none."""

    @property
    def version(self) -> VersionRecord | None:
        """The version that was recalibrated on them."""


class BatchRecord(Protocol):
    """Rows of an interval that were scored, then learned."""

    @property
    def start(self) -> datetime:
        """Of the interval."""

    @property
    def end(self) -> datetime:
        """Of the interval."""

    @property
    def rows(self) -> int:
        """Of the interval."""

    @property
    def learned_rows(self) -> int:
        """Since the stream began."""

    @property
    def window(self) -> QualityRecord | None:
        """Quality over the sliding window."""

    @property
    def batch(self) -> QualityRecord | None:
        """Quality of these rows alone."""

    @property
    def version(self) -> VersionRecord | None:
        """What came of the model."""

    @property
    def held(self) -> str | None:
        """Why there was none."""

    @property
    def learner(self) -> Mapping[str, Any]:
        """Facts of the learner."""

    @property
    def lag_seconds(self) -> float | None:
        """From the newest event to the moment of learning."""

    @property
    def rows_per_second(self) -> float | None:
        """Joined, scored and learned."""

    @property
    def aside(self) -> Mapping[str, int]:
        """Events set aside since the stream began, by reason."""


@dataclass(frozen=True)
class StreamHistory:
    """The records of a stream, oldest first."""

    intervals: Sequence[IntervalRecord]
    batches: Sequence[BatchRecord]

    def newest(self, most: int) -> Self:
        """Return the last of them, at most so many of each kind."""
        return replace(self, intervals=self.intervals[-most:], batches=self.batches[-most:])

    def scored(self) -> Iterator[tuple[BatchRecord, QualityRecord]]:
        """Yield the batches that a model had scored, and the quality of the window then."""
        for batch in self.batches:
            if batch.window is not None:
                yield batch, batch.window

    def offers(self) -> list[tuple[datetime, VersionRecord]]:
        """Return every version that was offered to the registry, and when, in order."""
        records: list[IntervalRecord | BatchRecord] = [*self.intervals, *self.batches]
        found = [(record.end, record.version) for record in records if record.version is not None]
        return sorted(found, key=lambda pair: pair[1].version)

    def ends(self) -> list[datetime]:
        """Return the end of every interval, of both kinds of records."""
        return [i.end for i in self.intervals] + [b.end for b in self.batches]

    def objectives(self) -> list[str]:
        """Return the objectives, in the order of the schema."""
        return next((list(quality.auc) for _, quality in self.scored()), [])
