"""History: a line for every interval and every batch of a stream, in the file history.jsonl."""

__all__ = ["HISTORY", "History", "HistoryRecord", "read_history"]

import os
from pathlib import Path

import msgspec

from harmonrank.streaming.loop_events import BatchLearned, IntervalCompleted
from harmonrank.support.errors import DataError
from harmonrank.support.storage.decoding import decode_json
from harmonrank.support.storage.staging import flush_names

HISTORY = "history.jsonl"
"""Of a state folder."""

HistoryRecord = IntervalCompleted | BatchLearned
"""What a line holds."""


class History:
    """Appends lines, and takes back those that no commit knows of.

    A killed run may have written lines after its last commit. What they tell happens again, so
    they are cut off at the next start: every interval and batch is there once.

    Args:
        state: The folder of the stream's state.
        length: Of the file at the last commit, in bytes.
    """

    def __init__(self, state: Path, length: int) -> None:
        self._path, self.length = state / HISTORY, length
        self._lines: list[bytes] = []
        there = self._path.stat().st_size if self._path.exists() else 0
        if there < length:
            raise DataError(
                f"'{self._path}' has {there:,} bytes; expected at least {length:,}, as the last "
                "commit says. Put the file back, or begin a new state with `--backfill`."
            )
        if there > length:
            os.truncate(self._path, length)

    def add(self, record: HistoryRecord) -> None:
        """Keep a record until it is flushed."""
        self._lines.append(msgspec.json.encode(record) + b"\n")

    def flush(self) -> None:
        """Bring the records to the disk; may be tried again if it fails.

        Raises:
            OSError: The disk is full, or gone.
        """
        if not self._lines:
            return
        new = not self._path.exists()
        with self._path.open("ab") as stream:
            # What an attempt that failed has left is written over.
            stream.truncate(self.length)
            stream.seek(self.length)
            stream.write(b"".join(self._lines))
            stream.flush()
            os.fsync(stream.fileno())
        if new:
            flush_names(self._path.parent)
        self.length += sum(map(len, self._lines))
        self._lines = []


def read_history(state: Path) -> list[HistoryRecord]:
    """Return the records of a stream, oldest first; a line that is still being written is left out.

    Raises:
        DataError: There is no history, or a line is none of ours.
    """
    path = state / HISTORY
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(
            f"'{path}' cannot be read: {error.strerror or error}; name the state folder of a "
            "stream that has joined an interval."
        ) from None
    return [
        decode_json(line, HistoryRecord, f"Line {number:,} of '{path}'")  # type: ignore[arg-type]
        for number, line in enumerate(lines, 1)
    ]
