"""StreamHistory: what a page shows of a stream's records."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Self

from msgspec import structs

if TYPE_CHECKING:
    from harmonrank.streaming.loop_events import (
        BatchLearned,
        IntervalCompleted,
        Publication,
        QualityFacts,
    )


@dataclass(frozen=True)
class StreamHistory:
    """The records of a stream, oldest first."""

    intervals: "Sequence[IntervalCompleted]"
    batches: "Sequence[BatchLearned]"

    def newest(self, most: int) -> Self:
        """Return the last of them, at most so many of each kind."""
        return replace(self, intervals=self.intervals[-most:], batches=self.batches[-most:])

    def within_requests(self) -> Self:
        """Return the same history by AUCs within requests, where they are known."""
        batches = [
            structs.replace(
                b, window=b.window and b.window.requests, batch=b.batch and b.batch.requests
            )
            for b in self.batches
        ]
        return replace(self, batches=batches)

    def scored(self) -> "Iterator[tuple[BatchLearned, QualityFacts]]":
        """Yield the batches that a model had scored, and the quality of the window then."""
        for batch in self.batches:
            if batch.window is not None:
                yield batch, batch.window

    def offers(self) -> "list[tuple[datetime, Publication]]":
        """Return every version that was offered to the registry, and when, in order."""
        records: list[IntervalCompleted | BatchLearned] = [*self.intervals, *self.batches]
        versions = [
            (record.end, record.version) for record in records if record.version is not None
        ]
        return sorted(versions, key=lambda pair: pair[1].version)

    def ends(self) -> list[datetime]:
        """Return the end of every interval, of both kinds of records."""
        return [i.end for i in self.intervals] + [b.end for b in self.batches]

    def objectives(self) -> list[str]:
        """Return the objectives, in the order of the schema."""
        return next((list(quality.auc) for _, quality in self.scored()), [])
