"""State: all that a stream knows, read from its newest commit and written to the next one."""

__all__ = ["StreamState", "TriedRecalibration", "open_state"]

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harmonrank.data import Schema
from harmonrank.streaming.config import StreamConfig
from harmonrank.streaming.join.intervals import Batch, Exposures, JoinRecord
from harmonrank.streaming.join.join import Join
from harmonrank.streaming.learners.learner import (
    LearnerRecipe,
    LearnerRecord,
    StreamLearner,
    new_learner,
)
from harmonrank.streaming.learners.prequential import Prequential, ScoredBatch
from harmonrank.streaming.learners.training import GuardRows, Replacement, StreamTraining
from harmonrank.streaming.state.commits import Commits, read_frame
from harmonrank.streaming.state.files import AsideFiles, History, StreamIdentity, identity_of
from harmonrank.support.errors import OutputError, UsageError
from harmonrank.support.storage.files import read_json
from harmonrank.support.storage.staging import held

Count = Annotated[int, Meta(ge=0, le=2**62)]
_RECORD = "commit.json"
_GUARD, _ASIDE, _SCORES = "guard.parquet", "aside.parquet", "scores.parquet"
_TIMES = ("digest", "since", "until", "watched")
"""What a training and its record have under one name."""


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
    steps: list[Exposures] = field(default_factory=list)

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
            **{name: getattr(training, name) for name in _TIMES},
            history=self.history.length,
            judged=training.guard.judged,
            replacements=[change.since for change in training.replacements],
            steps=[StepRecord(step.kind, step.start, step.end) for step in self.steps],
            quality=list(training.quality.batches),
            join=self.join.record(),
            learner=training.learner.record(),
        )
        return self.commits.commit(self._parts())

    def _parts(self) -> dict[str, Any]:
        training = self.training
        return {
            _RECORD: self.record,
            _GUARD: training.guard.rows,
            _SCORES: training.scores,
            _ASIDE: self.aside.held,
            **{f"join-{name}.parquet": rows for name, rows in self.join.frames().items()},
            **{_name("replacement", each.since): each.rows for each in training.replacements},
            **{_name(step.kind, step.start): step.rows for step in self.steps},
            **training.learner.parts(),
        }


def _name(kind: str, time: Any) -> str:
    """Return the file of an interval; a state has at most one of each kind."""
    return f"{kind}-{time:%Y%m%dT%H%M%S%f}.parquet"


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
    learner = new_learner(config.method, config.options, schema, config.learner)
    Join(schema, config)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"The state '{folder}' cannot be written: {error.strerror or error}; choose another "
            "folder."
        ) from None
    with held(folder) as mine:
        if not mine:
            raise UsageError(
                f"Another stream is at work on the state '{folder}'; stop it, or use another "
                "--state."
            )
        commits = Commits(folder)
        identity = identity_of(folder, address, schema, config, empty=not commits.number)
        swept = commits.sweep()
        yield _restored(commits, identity, learner.recipe, config), swept


def _restored(
    commits: Commits, identity: StreamIdentity, recipe: LearnerRecipe, config: StreamConfig
) -> StreamState:
    commits.check()
    schema, frame = recipe.schema, partial(commits.find, reader=read_frame)
    record = commits.find(_RECORD, lambda path: read_json(path, CommitRecord)) or CommitRecord()

    def rows(kind: str, time: Any) -> Any:
        return commits.read(_name(kind, time), read_frame)

    training = StreamTraining(
        schema,
        config,
        StreamLearner.restored(recipe, record.learner, commits),
        Prequential(config.quality_batches, tuple(record.quality)).check(schema),
        GuardRows(frame(_GUARD), record.judged),
        tuple(Replacement(since, rows("replacement", since)) for since in record.replacements),
        scores=frame(_SCORES),
        **{name: getattr(record, name) for name in _TIMES},
    )
    join = Join.restored(
        record.join, schema, config, lambda name: commits.read(f"join-{name}.parquet", read_frame)
    )
    kinds = {step.kind: step for step in (Batch, Exposures)}
    steps = [kinds[s.kind](s.start, s.end, rows(s.kind, s.start)) for s in record.steps]
    history, aside = (
        History(commits.state, record.history),
        AsideFiles(commits.state, commits.number, frame(_ASIDE)),
    )
    return StreamState(identity, commits, join, training, history, aside, record, steps)
