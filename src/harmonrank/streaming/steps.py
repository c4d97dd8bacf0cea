"""Steps: what is done when an interval is complete, and when it is closed."""

__all__ = ["batch_event", "interval_event", "offered", "recalibrated_version"]

from contextlib import suppress
from typing import Any

from harmonrank.data import read_log
from harmonrank.streaming.join.intervals import Batch, Exposures
from harmonrank.streaming.loop_events import (
    BatchLearned,
    IntervalCompleted,
    Publication,
    ScoreMove,
)
from harmonrank.streaming.prequential import Prequential
from harmonrank.streaming.publishing import Publisher
from harmonrank.streaming.replacement import Seen, agreed, seen_by
from harmonrank.streaming.state.record import TriedRecalibration
from harmonrank.streaming.training import StreamTraining
from harmonrank.support.errors import DataError


def interval_event(
    training: StreamTraining, exposures: Exposures, seen: Seen | None
) -> IntervalCompleted:
    """Return what is told of a complete interval, which the model of a training has seen."""
    start, end, rows = exposures.start, exposures.end, exposures.rows
    if seen is None:
        return IntervalCompleted(start=start, end=end, rows=rows.height)
    drift, psi = seen.drift, training.stability(rows)
    moves = {
        column.column: ScoreMove(
            column.offset, column.scale, column.verdict, psi.get(column.column)
        )
        for column in drift.columns
    }
    return IntervalCompleted(
        start=start,
        end=end,
        rows=rows.height,
        moves=moves,
        replaced=list(drift.replaced),
        evidence=list(drift.evidence),
    )


def recalibrated_version(
    publisher: Publisher,
    exposures: Exposures,
    training: StreamTraining,
    seen: Seen | None,
    tried: TriedRecalibration | None,
) -> tuple[Publication | None, TriedRecalibration | None]:
    """Recalibrate what is served, if its scores moved as if upstream models were replaced.

    It is the current version and not the learner's model: that one may have been refused, and rows
    without labels could not tell why. What the guardrails refused once is not tried again until
    another version is current, or other scores are concerned.

    Args:
        publisher: Knows the current version.
        exposures: Of the interval.
        training: The stream's own, before these exposures.
        seen: What its model said about them.
        tried: What was tried before.

    Returns:
        What came of it, if it had to be, and what not to try again.
    """
    note = publisher.note(exposures.end, recalibrated=True)
    found = publisher.before(note)
    if found is None:
        return None, tried
    with suppress(DataError):  # A version with other columns: the guardrails will say so.
        schema = found.model.schema
        if seen is None or found.model is not training.adjusted:
            time = training.schema.time or "time"
            seen = agreed(seen_by(found.model, exposures.rows, exposures.start, time), seen)
        now = TriedRecalibration(found.number, list(seen.drift.replaced))
        if seen.replacement is not None and now != tried:
            rows = read_log(seen.replacement.rows, schema, labels=False)
            model = found.model.recalibrated(rows)
            return publisher.publish(model, rows, note, found.window, recalibrated=True), now
    return None, tried


def offered(publisher: Publisher, training: StreamTraining) -> Publication | None:
    """Publish what a training has learned; None if it cannot be judged yet."""
    candidate = training.candidate()
    if candidate is None or training.until is None:
        return None
    window = f"{training.since:%Y-%m-%dT%H:%M}/{training.until:%Y-%m-%dT%H:%M}"
    return publisher.publish(*candidate, publisher.note(training.until), window)


def batch_event(
    before: StreamTraining, after: StreamTraining, batch: Batch, **rest: Any
) -> BatchLearned:
    """Return what is told of a batch; `rest` is what the training does not know."""
    schema, own = after.schema, None
    if before.learner.model is not None:
        own = Prequential(1, after.quality.batches[-1:])
    return BatchLearned(
        start=batch.start,
        end=batch.end,
        rows=batch.rows.height,
        learned=after.learned_rows - before.learned_rows,
        learned_rows=after.learned_rows,
        guard_rows=after.guard.count,
        positives={name: int(batch.rows[name].sum()) for name in schema.names},
        window=after.quality.quality(schema),
        batch=None if own is None else own.quality(schema),
        held=after.held(),
        learner=after.learner.facts(),
        **rest,
    )
