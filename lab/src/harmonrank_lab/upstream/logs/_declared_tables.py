"""The files of a declared log in a folder, and its tables of features."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from harmonrank.data.reading import column_names
from harmonrank.support import DataError, UsageError, did_you_mean
from harmonrank_lab.upstream.logs._chunks import read_features
from harmonrank_lab.upstream.logs._columns import FeatureTable, TableSource
from harmonrank_lab.upstream.logs._declaration import (
    ColumnRule,
    Declaration,
    JoinRules,
    Roles,
    TableRules,
)
from harmonrank_lab.upstream.logs._rules import Made, cleaned, counted, resolved

_ENDINGS = (".csv", ".parquet")


def log_files(folder: Path, declared: Declaration) -> tuple[Path, list[Path]]:
    """Return the files of the first folder that has some."""
    for home in (folder / name for name in declared.folders):
        for patterns in (declared.files, declared.instead):
            paths = [path for pattern in patterns for path in sorted(home.glob(pattern))]
            paths = [path for path in dict.fromkeys(paths) if path.is_file()]
            if declared.one_file and len(paths) > 1:
                names = ", ".join(path.name for path in paths)
                raise UsageError(
                    f"'{folder}' holds {names}, which overlap; choose one with --file (in Python, "
                    "file=)."
                )
            if paths:
                _check_endings(paths)
                one_version(declared, paths)
                return home, paths
    raise no_files(folder, declared)


def _check_endings(files: Sequence[Path]) -> None:
    for file in files:
        if file.suffix.lower() not in _ENDINGS:
            raise DataError(
                f"'{file}' must be a csv or parquet file, by its ending; unpack or convert it."
            )


def no_files(folder: Path, declared: Declaration, pattern: str = "") -> DataError:
    """Return the error that says what is missing, and where a public log is to be had."""
    below = [f" or in its folder '{name}'" for name in declared.folders if name != "."]
    expected = " or ".join(declared.files if declared.one_file else declared.files[:1])
    where, source = f"{pattern or expected} in it{''.join(below)}", declared.download
    if source is None:
        return DataError(
            f"'{folder}' holds no files of the log '{declared.kind}': expected {where}, as its "
            "declaration says; check both."
        )
    return DataError(
        f"'{folder}' holds no {source.name} log: expected {where}. Download {source.what} from "
        f"{source.page}, where its licence must be agreed to; nothing is downloaded for you."
    )


def table_file(folder: Path, home: Path, declared: Declaration, table: TableRules) -> Path:
    """Return the file of a table of features, which is where the log is."""
    paths = [path for pattern in table.files for path in sorted(home.glob(pattern))]
    if not paths:
        raise no_files(folder, declared, table.files[0])
    _check_endings(paths[:1])
    return paths[0]


def one_version(declared: Declaration, files: Sequence[Path]) -> None:
    """Refuse files of different versions."""
    if declared.one_version is None:
        return
    matches = [re.search(declared.one_version, file.stem) for file in files]
    versions = {match[1] for match in matches if match}
    if len(versions) > 1:
        raise UsageError(
            f"The folder holds files of more than one version: {', '.join(sorted(versions))}; "
            "keep each in a folder of its own, since they number users and videos differently."
        )


def shared_columns(declared: Declaration, files: Sequence[Path]) -> list[str]:
    """Return the columns that all files have; a label that one has, all must have."""
    columns = {file: column_names(file) for file in files}
    somewhere = {name for names in columns.values() for name in names}
    there = [name for name in columns[files[0]] if all(name in c for c in columns.values())]
    known = [[n for n in declared.rule(m).names(m) if n in somewhere] for m in declared.labels]
    labels = [names[0] for names in known if names]
    for file in files:
        lost = [name for name in labels if name not in columns[file]]
        if lost:
            raise DataError(
                f"'{file}' has no column '{lost[0]}', which other files of the log have; write it "
                "again with all columns, or leave it out."
            )
    return there


def declared_columns(
    log: Declaration, roles: Roles, role: str, names: Sequence[str], file: Path, there: list[str]
) -> list[Made]:
    """Return the columns that a role becomes, or say which one is missing."""
    made: list[Made] = []
    for name in names:
        try:
            made += resolved(roles, role, name, there)
        except KeyError as missing:
            (lacking,) = missing.args
            if log.download is not None:
                raise DataError(
                    f"'{file}' has no column '{lacking}', so it is not the official file. "
                    f"Got {', '.join(there[:30])}."
                ) from None
            raise DataError(
                f"'{file}' has no column '{lacking}', which the declaration names. "
                f"{did_you_mean(lacking, there)}"
            ) from None
    return made


def declared_table(
    declared: Declaration, rules: TableRules, file: str, key: str, path: Path
) -> TableSource:
    """Return how a table of features is read.

    Args:
        declared: The log.
        rules: Of the table.
        file: What it will be called in the imported log.
        key: What its id will be called: as in the rows.
        path: Where it is.
    """
    there = column_names(path)
    (own,) = declared_columns(declared, rules, "id", [rules.id], path, there)
    made = [Made(key, "id", own.rule, own.source)]
    for role in ("categorical", "multi", "numeric"):
        made += declared_columns(declared, rules, role, getattr(rules, role), path, there)
    categorical = tuple(m.name for m in made if m.role in ("categorical", "multi"))
    numeric = tuple(m.name for m in made if m.role == "numeric")
    return TableSource(
        path,
        FeatureTable(file, key, categorical, numeric),
        tuple(dict.fromkeys(m.source for m in made)),
        clean=lambda frame: cleaned(frame, made, None),
        count=lambda frame: counted(frame, made, rules, None),
    )


@dataclass(frozen=True)
class JoinedTable:
    """A table whose features become features of the rows that refer to it.

    Attributes:
        on: The column of the rows that names a row of it; not kept itself.
        source: How it is read.
    """

    on: Made
    source: TableSource

    @cached_property
    def frame(self) -> pl.DataFrame:
        """All of it, the first row of each id; it must fit into memory."""
        return read_features(self.source)

    def join(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows that hold its id with its features; null where it has no such row."""
        return rows.join(self.frame, self.on.name, "left", maintain_order="left")


def joined_table(
    declared: Declaration, name: str, rules: JoinRules, path: Path, file: Path, there: list[str]
) -> JoinedTable:
    """Return a table to join to rows whose files have these columns."""
    hidden = f"id of {name}"
    (on,) = declared_columns(declared, declared, "id", [rules.on], file, there)
    source = declared_table(declared, rules, "", hidden, path)
    # Whatever else becomes of the column, here it is an id.
    rule = ColumnRule(transform="id", type=on.rule.type if on.rule.whole else None)
    return JoinedTable(Made(hidden, "id", rule, on.source), source)
