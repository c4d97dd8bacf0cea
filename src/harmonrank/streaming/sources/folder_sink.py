"""Folder sink: events as numbered files, which appear when they are complete."""

__all__ = ["FORMS", "FolderSink"]

import re
from pathlib import Path

import polars as pl

from harmonrank.data.reading.parquet import writing
from harmonrank.streaming.sources.event_reading import to_lines
from harmonrank.support.errors import OutputError, UsageError, did_you_mean
from harmonrank.support.storage.files import new_file

FORMS = ("parquet", "jsonl")
"""How files of events are written."""

_NUMBER = re.compile(r"events-(\d{12})\.\w+")


class FolderSink:
    """Writes events to numbered files, which appear when they are complete."""

    def __init__(self, folder: Path, form: str) -> None:
        if form not in FORMS:
            raise UsageError(
                f"There are no files of the form '{form}'. {did_you_mean(form, FORMS)}"
            )
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._form = folder, form
        found = (_NUMBER.fullmatch(path.name) for path in folder.iterdir())
        self._number = max((int(match[1]) for match in found if match), default=0)

    def write(self, events: pl.DataFrame) -> None:
        """Write events to the next file."""
        if not events.height:
            return
        self._number += 1
        path = self._folder / f"events-{self._number:012}.{self._form}"
        try:
            with new_file(path) as made:
                if self._form == "jsonl":
                    made.write_bytes(b"".join(line + b"\n" for line in to_lines(events)))
                else:
                    with writing():
                        plain = events.drop("fault", "raw", strict=False)
                        # Twice as fast to read as the default, and little larger.
                        plain.write_parquet(made, compression="lz4", statistics=False)
        except OutputError:
            self._number -= 1
            raise

    def close(self) -> None:
        """Do nothing: every file is closed."""
