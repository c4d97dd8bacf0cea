"""Aside files: events that count for nothing, kept as parquet with the reason, each once."""

__all__ = ["ASIDE", "AsideFiles"]

from pathlib import Path

import polars as pl

from harmonrank.data.reading.parquet import writing
from harmonrank.support.storage.files import new_file
from harmonrank.support.storage.staging import remove

ASIDE = "aside"
"""The folder of a state in which they are."""

_MOST = 100_000


class AsideFiles:
    """Gathers events until there is a file's worth of them.

    A file has the number of the commit that knows of it. What a killed run wrote after its last
    commit has a higher one, and is removed by the next start, which comes to the same events.

    Args:
        state: The folder of the stream's state.
        commit: The last one.
        held: Events that the last commit holds itself.
    """

    def __init__(self, state: Path, commit: int, held: pl.DataFrame | None) -> None:
        self._folder, self.held = state / ASIDE, held
        self._folder.mkdir(exist_ok=True)
        for path in self._folder.iterdir():
            later = path.stem.isdigit() and int(path.stem) > commit
            if later or (path.name.startswith(".") and path.suffix == ".partial"):
                remove(path)

    def add(self, events: pl.DataFrame) -> None:
        """Take events with their reasons."""
        if events.height:
            there = [] if self.held is None else [self.held]
            self.held = pl.concat([*there, events], how="diagonal_relaxed")

    def flush(self, commit: int, *, whole: bool) -> None:
        """Write a file of the coming commit, if there are enough events or the file is wanted.

        Raises:
            OutputError: The disk is full, or gone.
        """
        if self.held is None or not (whole or self.held.height >= _MOST):
            return
        with new_file(self._folder / f"{commit}.parquet", overwrite=True) as made, writing():
            self.held.write_parquet(made)
        self.held = None
