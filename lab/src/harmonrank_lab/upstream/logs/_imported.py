"""ImportedLog: an imported log, read part by part, and the manifest of its files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Self, TypedDict, TypeVar

import polars as pl
from msgspec import Meta

from harmonrank.support import DataError, UsageError, did_you_mean
from harmonrank.support.storage import decode, read_json, sha256
from harmonrank_lab.upstream.logs._columns import (
    LOG_TOML,
    PARTS,
    FeatureTable,
    LogColumns,
    check_labels,
)

FORMAT = 1
MANIFEST = "manifest.json"

Of = TypeVar("Of")
_Rows = Annotated[int, Meta(ge=0, le=2**53)]
_Name = Annotated[str, Meta(pattern=r"^((train|valid|test)/)?[\w-]+\.parquet$")]


class _FileAbout(TypedDict):
    """A file of an imported log."""

    bytes: _Rows
    sha256: str
    rows: _Rows


class _Parts(TypedDict, Generic[Of]):
    """Something of each part."""

    train: Of
    valid: Of
    test: Of


class Manifest(TypedDict):
    """The manifest, as far as it is read again; the rest is for people."""

    format: int
    kind: str
    rows: _Parts[_Rows]
    positives: _Parts[dict[str, _Rows]]
    notes: list[str]
    oddities: dict[str, _Rows]
    files: dict[_Name, _FileAbout]


def about(path: Path) -> dict[str, Any]:
    """Return the size and checksum of a file."""
    return {"bytes": path.stat().st_size, "sha256": sha256(path)}


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say in one sentence why a table of an imported log cannot be read."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise DataError(f"'{path}' cannot be read: {reason}; import it again.") from None


def _check_kinds(path: Path, of: LogColumns | FeatureTable) -> None:
    """Refuse a file that lacks a column of its log, or has one of another type.

    Only its footer is read.
    """
    with reading(path):
        kinds = pl.read_parquet_schema(path)
    whole, fractions = [], []
    if isinstance(of, LogColumns):
        whole = [of.row, of.user, of.item, of.request, *of.objectives, *filter(None, [of.time])]
        fractions = list(of.truth.values())
    else:
        whole = [of.id]
    wanted = dict.fromkeys(whole, "whole numbers") | dict.fromkeys(of.numeric, "numbers")
    wanted |= dict.fromkeys(fractions, "numbers")
    wanted |= dict.fromkeys(of.categorical, "text or whole numbers")
    for name, expected in wanted.items():
        if name not in kinds:
            raise DataError(f"'{path}' has no column '{name}'; import the log again.")
        if not _is_kind(kinds[name], expected):
            raise DataError(
                f"Column '{name}' of '{path}' must hold {expected}. Got type {kinds[name]}; import "
                "the log again."
            )


def _is_kind(kind: pl.DataType, expected: str) -> bool:
    text = expected.startswith("text") and kind in (pl.String, pl.Boolean)
    return text or kind.is_integer() or (expected == "numbers" and kind.is_numeric())


@dataclass(frozen=True)
class ImportedLog:
    """A folder that `import_log` wrote.

    Attributes:
        folder: Where it is.
        columns: Which column is what.
        manifest: Source, split, rows, positives, and size and checksum of every file.
    """

    folder: Path
    columns: LogColumns
    manifest: dict[str, Any]

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open an imported log; refuse one that lacks a file or has one of another size."""
        folder = Path(folder)
        if not (folder / LOG_TOML).is_file() or not (folder / MANIFEST).is_file():
            raise DataError(
                f"'{folder}' is not an imported log: expected {LOG_TOML} and {MANIFEST} in it. "
                "Make one with `harmonrank lab data import`."
            )
        manifest = read_json(folder / MANIFEST)
        decode(manifest, Manifest, f"'{folder / MANIFEST}' is damaged")
        for name, about in manifest["files"].items():
            file = folder / name
            if not file.is_file() or file.stat().st_size != about["bytes"]:
                raise DataError(f"'{file}' is missing or damaged; import the log again.")
        columns = LogColumns.read(folder / LOG_TOML)
        counted = manifest["positives"].values()
        if any(set(of_part) != set(columns.objectives) for of_part in counted):
            raise DataError(
                f"'{folder}' counts other objectives than it has; import the log again."
            )
        log = cls(folder, columns, manifest)
        for file in (path for part in PARTS for path in log.parts(part)):
            _check_kinds(file, columns)
        for table in (columns.users, columns.items):
            if table is not None:
                _check_kinds(folder / table.file, table)
        return log

    @property
    def rows(self) -> dict[str, int]:
        """How many rows train, valid and test have."""
        return dict(self.manifest["rows"])

    def parts(self, part: str) -> list[Path]:
        """Return the files of train, valid or test, in order."""
        if part not in PARTS:
            raise UsageError(f"A log has no part '{part}'. {did_you_mean(part, PARTS)}")
        names = sorted(n for n in self.manifest["files"] if n.startswith(f"{part}/"))
        return [self.folder / name for name in names]

    def batches(
        self, part: str, columns: Sequence[str] | None = None, *, rows: int = 65_536
    ) -> Iterator[pl.DataFrame]:
        """Yield frames of at most so many rows, in order; one file is in memory at a time."""
        for file in self.parts(part):
            with reading(file):
                frame = pl.read_parquet(file, columns=None if columns is None else list(columns))
            check_labels(frame, [o for o in self.columns.objectives if o in frame.columns], file)
            yield from frame.iter_slices(rows)

    def users(self) -> pl.DataFrame | None:
        """Return the features of users, ids ascending, or None where there are none."""
        return self._table(self.columns.users)

    def items(self) -> pl.DataFrame | None:
        """Return the features of items, ids ascending, or None where there are none."""
        return self._table(self.columns.items)

    def _table(self, table: FeatureTable | None) -> pl.DataFrame | None:
        if table is None:
            return None
        path = self.folder / table.file
        with reading(path):
            frame = pl.read_parquet(path)
        ids = frame[table.id]
        if ids.null_count() or not (ids.diff().slice(1) > 0).all():
            raise DataError(f"Column '{table.id}' of '{path}' must ascend; import the log again.")
        return frame
