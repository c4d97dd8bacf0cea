"""Which files and columns a raw log has, and which column of an imported one is what."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import polars as pl
import tomli_w

from harmonrank.support import DataError, did_you_mean
from harmonrank.support.storage import decode, read_toml

LOG_TOML = "log.toml"
PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class FeatureTable:
    """A table of features with one row per id, ids ascending.

    Attributes:
        file: Its name in the folder of the log.
        id: The column that rows of the log refer to.
        categorical: Text or whole numbers; null where unknown.
        numeric: Numbers; null where unknown.
    """

    file: str
    id: str
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogColumns:
    """Names the columns of an imported log, so that no reader needs to know its format.

    Attributes:
        kind: The format it came from.
        row: Number of the row over all source files.
        user: Who was shown something.
        item: What was shown.
        time: Milliseconds since 1970, or None where the source has no clock.
        request: Rows that were shown together share its value.
        objectives: Labels, 0 or 1.
        categorical: Features of the row: whole numbers, null where unknown.
        numeric: Features of the row: numbers, null where unknown.
        feedback: What is known only after the showing, and so never a feature.
        history: Earlier items of the user, null where there are none.
        users: Features of users, or None.
        items: Features of items, or None.
        truth: Column of each objective's true probability, where the log was simulated.
    """

    kind: str
    user: str
    item: str
    request: str
    objectives: tuple[str, ...]
    row: str = "row"
    time: str | None = None
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    users: FeatureTable | None = None
    items: FeatureTable | None = None
    truth: Mapping[str, str] = field(default_factory=dict)

    def to_toml(self) -> str:
        """Return the text of log.toml; parts that are not there are left out."""
        parts = asdict(self)
        for table in ("users", "items"):
            parts[table] = parts[table] and _known(parts[table])
        return tomli_w.dumps(_known(parts))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read log.toml."""
        what = "the columns of a log"
        try:
            parts = read_toml(Path(path), what)
        except FileNotFoundError as error:
            raise DataError(f"'{path}' cannot be read as {what}: {error}.") from None
        known = [f.name for f in fields(cls)]
        for key in parts:
            if key not in known:
                raise DataError(f"'{path}' has an unknown part '{key}'. {did_you_mean(key, known)}")
        columns = decode(parts, cls, f"'{path}' does not name the columns of a log")
        for table in (columns.users, columns.items):
            if table is not None and Path(table.file).name != table.file:
                raise DataError(f"'{path}' names a file '{table.file}' outside of its folder.")
        return columns


def _known(parts: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parts.items() if value is not None and value != {}}


@dataclass(frozen=True)
class TableSource:
    """A file of features and what becomes of it.

    Attributes:
        path: The raw file.
        table: The columns of the table to be written.
        reads: The source columns that `clean` needs.
        clean: From text columns to typed ones, of which the first is the id.
        count: How often each oddity was met in the text columns.
    """

    path: Path
    table: FeatureTable
    reads: tuple[str, ...]
    clean: Callable[[pl.DataFrame], pl.DataFrame]
    count: Callable[[pl.DataFrame], dict[str, int]]


def check_labels(frame: pl.DataFrame, columns: Sequence[str], path: Path) -> None:
    """Refuse a label that is not 0 or 1."""
    for name in columns:
        wrong = ~frame[name].is_in([0, 1]).fill_null(value=False)
        if wrong.any():
            value = frame[name].filter(wrong)[0]
            raise DataError(
                f"Label column '{name}' of '{path}' must be 0 or 1. "
                f"Got {'null' if value is None else value}; drop or repair such rows."
            )
