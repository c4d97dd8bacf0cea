"""State: all that a stream knows, read from its newest commit and written to the next one."""

__all__ = ["StreamState", "open_state"]

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from harmonrank.data import Schema
from harmonrank.data.reading.parquet import writing
from harmonrank.data.reading.table_files import reading
from harmonrank.streaming.config import StreamConfig
from harmonrank.streaming.guard import GuardRows
from harmonrank.streaming.join.join import Batch, Exposures, Join
from harmonrank.streaming.learners.learner import load_learner, new_learner
from harmonrank.streaming.prequential import Prequential
from harmonrank.streaming.replacement import Replacement
from harmonrank.streaming.settings import StreamIdentity, identity_of, make_folder
from harmonrank.streaming.state.aside_files import AsideFiles
from harmonrank.streaming.state.checkpoint import Commits, StatePart, newest_commit
from harmonrank.streaming.state.commit_record import CommitRecord, StepRecord
from harmonrank.streaming.state.history import History
from harmonrank.streaming.training import StreamTraining
from harmonrank.support.errors import DataError, UsageError
from harmonrank.support.storage.files import read_json, write_json
from harmonrank.support.storage.staging import held

_RECORD, _JOIN, _LEARNER, _QUALITY = "commit.json", "join", "learner", "quality"
_GUARD, _ASIDE, _SCORES = "guard.parquet", "aside.parquet", "scores.parquet"

Step = Exposures | Batch


@dataclass
class StreamState:
    """What a stream knows, between two commits.

    Attributes:
        record: The facts of the last commit; those that the loop itself counts are replaced by it.
        steps: Complete and closed intervals that are still to be worked on, in order.
    """

    identity: StreamIdentity
    commits: Commits
    join: Join
    training: StreamTraining
    history: History
    aside: AsideFiles
    record: CommitRecord
    steps: list[Step] = field(default_factory=list)

    def commit(self, *, whole: bool) -> int:
        """Bring all of it to the disk; may be tried again if it fails.

        Args:
            whole: Whether events that were set aside are to be seen in their own file now.

        Raises:
            OutputError: The disk is full, or gone.
        """
        self.aside.flush(self.commits.number + 1, whole=whole)
        self.history.flush()
        training = self.training
        self.record = msgspec.structs.replace(
            self.record,
            history=self.history.length,
            batches=training.batches,
            learned_rows=training.learned_rows,
            digest=training.digest,
            since=training.since,
            until=training.until,
            watched=training.watched,
            judged=training.guard.judged,
            replacements=[found.since for found in training.replacements],
            steps=[StepRecord(_kind(step), step.start, step.end) for step in self.steps],
        )
        return self.commits.commit(self._parts())

    def _parts(self) -> dict[str, StatePart]:
        training, before = self.training, self.commits.folder
        joined = None if before is None else before / _JOIN
        parts = {
            _RECORD: StatePart(
                None, lambda path: write_json(path, msgspec.to_builtins(self.record))
            ),
            _JOIN: StatePart(None, lambda path: self.join.save(path, before=joined)),
            _LEARNER: StatePart(training.learner, training.learner.save),
            _QUALITY: StatePart(training.quality, training.quality.save),
        }
        frames = {_GUARD: training.guard.rows, _SCORES: training.scores, _ASIDE: self.aside.held}
        frames |= {_name(found): found.rows for found in training.replacements}
        frames |= {_name(step): step.rows for step in self.steps}
        for name, frame in frames.items():
            if frame is not None:
                parts[name] = StatePart(frame, _writer(frame))
        return parts


def _kind(step: Step) -> Any:
    return "batch" if isinstance(step, Batch) else "exposures"


def _name(found: Step | Replacement | StepRecord) -> str:
    """Return the file of an interval; a state has at most one of each kind."""
    if isinstance(found, Replacement):
        return f"replacement-{found.since:%Y%m%dT%H%M%S%f}.parquet"
    kind = found.kind if isinstance(found, StepRecord) else _kind(found)
    return f"{kind}-{found.start:%Y%m%dT%H%M%S%f}.parquet"


def _writer(frame: pl.DataFrame) -> Any:
    def write(path: Path) -> None:
        with writing():
            frame.write_parquet(path, compression="lz4")

    return write


def _frame(path: Path) -> pl.DataFrame | None:
    if not path.is_file():
        return None
    with reading(path, "parquet"):
        return pl.read_parquet(path, glob=False)


def _needed(path: Path) -> pl.DataFrame:
    found = _frame(path)
    if found is None:
        raise DataError(
            f"'{path}' is missing: the state is damaged. Begin a new one from the events with "
            "`harmonrank backfill`."
        )
    return found


@contextmanager
def open_state(
    folder: Path, address: str, schema: Schema, config: StreamConfig
) -> Iterator[tuple[StreamState, int]]:
    """Yield the state of a folder, ours alone, and how many leftovers of a killed run it had.

    Args:
        folder: Made if it is not there.
        address: Of the source.
        schema: Which column is what.
        config: What decides the results.

    Raises:
        UsageError: It was begun with other settings, or another process is at work on it.
        OutputError: It is a folder of something else, or cannot be written.
        DataError: It is damaged.
    """
    # What is wrong with the settings is said before anything is written.
    new = _begun(schema, config)
    make_folder(folder)
    with held(folder) as mine:
        if not mine:
            raise UsageError(
                f"Another stream is at work on the state '{folder}'; stop it, or use another "
                "--state."
            )
        newest = newest_commit(folder)
        identity = identity_of(folder, address, schema, config, empty=not newest)
        commits = Commits(folder)
        swept = commits.sweep()
        if commits.folder is None:
            join, training = new
            history, aside = History(folder, 0), AsideFiles(folder, 0, None)
            state = StreamState(identity, commits, join, training, history, aside, CommitRecord())
        else:
            state = _loaded(folder, commits, identity, schema, config)
        yield state, swept


def _begun(schema: Schema, config: StreamConfig) -> tuple[Join, StreamTraining]:
    """Return what a stream begins with."""
    learner = new_learner(config.method, config.options, schema, config.learner)
    training = StreamTraining(schema, config, learner, Prequential(config.quality_batches))
    return Join(schema, config.waits()), training


def _loaded(
    folder: Path, commits: Commits, identity: StreamIdentity, schema: Schema, config: StreamConfig
) -> StreamState:
    there = commits.folder
    assert there is not None, "there is a commit"
    commits.check()
    record = read_json(there / _RECORD, CommitRecord)
    steps = [_step(there, step) for step in record.steps]
    training = StreamTraining(
        schema,
        config,
        load_learner(there / _LEARNER, schema),
        Prequential.load(there / _QUALITY, schema),
        GuardRows(_frame(there / _GUARD), record.judged),
        tuple(_replacement(there, since) for since in record.replacements),
        record.batches,
        record.learned_rows,
        record.digest,
        record.since,
        record.until,
        record.watched,
        _frame(there / _SCORES),
    )
    aside = AsideFiles(folder, commits.number, _frame(there / _ASIDE))
    join = Join.load(there / _JOIN, schema, config.waits())
    history = History(folder, record.history)
    state = StreamState(identity, commits, join, training, history, aside, record, steps)
    commits.loaded({name: part.value for name, part in state._parts().items()})
    return state


def _step(folder: Path, step: StepRecord) -> Step:
    kind = Batch if step.kind == "batch" else Exposures
    return kind(step.start, step.end, _needed(folder / _name(step)))


def _replacement(folder: Path, since: datetime) -> Replacement:
    name = _name(Replacement(since, pl.DataFrame()))
    return Replacement(since, _needed(folder / name))
