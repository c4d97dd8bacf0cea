"""Finding: the files of a declared log in a folder, and the columns that they share."""

__all__ = ["found_files", "no_files", "one_version", "shared_columns", "table_file"]

import re
from collections.abc import Sequence
from pathlib import Path

from harmonrank.data.reading import column_names
from harmonrank.support.errors import DataError, UsageError
from harmonrank_lab.upstream.logs._declaration import ColumnRule, Declaration, TableRules

_ENDINGS = (".csv", ".parquet")


def found_files(folder: Path, declared: Declaration) -> tuple[Path, list[Path]]:
    """Return the files of the first folder that has some."""
    for home in (folder / name for name in declared.folders):
        for patterns in (declared.files, declared.instead):
            found = [path for pattern in patterns for path in sorted(home.glob(pattern))]
            found = [path for path in dict.fromkeys(found) if path.is_file()]
            if declared.one_file and len(found) > 1:
                names = ", ".join(path.name for path in found)
                raise UsageError(
                    f"'{folder}' holds {names}, which overlap; choose one with --file (in Python, "
                    "file=)."
                )
            if found:
                _check_endings(found)
                one_version(declared, found)
                return home, found
    raise no_files(folder, declared)


def _check_endings(files: Sequence[Path]) -> None:
    for file in files:
        if file.suffix.lower() not in _ENDINGS:
            raise DataError(
                f"'{file}' must be a csv or parquet file, by its ending; unpack or convert it."
            )


def _expected(declared: Declaration) -> str:
    return " or ".join(declared.files) if declared.one_file else declared.files[0]


def no_files(folder: Path, declared: Declaration, pattern: str = "") -> DataError:
    """Return the error that says what is missing, and where a public log is to be had."""
    below = [f" or in its folder '{name}'" for name in declared.folders if name != "."]
    where, source = f"{pattern or _expected(declared)} in it{''.join(below)}", declared.download
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
    patterns = [table.file] if isinstance(table.file, str) else table.file
    found = [path for pattern in patterns for path in sorted(home.glob(pattern))]
    if not found:
        raise no_files(folder, declared, patterns[0])
    _check_endings(found[:1])
    return found[0]


def one_version(declared: Declaration, files: Sequence[Path]) -> None:
    """Refuse files of different versions."""
    if declared.one_version is None:
        return
    matches = [re.search(declared.one_version, file.stem) for file in files]
    found = {match[1] for match in matches if match}
    if len(found) > 1:
        raise UsageError(
            f"The folder holds files of more than one version: {', '.join(sorted(found))}; "
            "keep each in a folder of its own, since they number users and videos differently."
        )


def shared_columns(declared: Declaration, files: Sequence[Path]) -> list[str]:
    """Return the columns that all files have; a label that one has, all must have."""
    columns = {file: column_names(file) for file in files}
    somewhere = {name for names in columns.values() for name in names}
    there = [name for name in columns[files[0]] if all(name in c for c in columns.values())]
    labels = [_source_in(declared.rule(name), name, somewhere) for name in declared.labels]
    for file in files:
        lost = [name for name in labels if name and name not in columns[file]]
        if lost:
            raise DataError(
                f"'{file}' has no column '{lost[0]}', which other files of the log have; write it "
                "again with all columns, or leave it out."
            )
    return there


def _source_in(rule: ColumnRule, name: str, there: set[str]) -> str | None:
    names = [rule.source] if isinstance(rule.source, str) else rule.source or [name]
    return next((n for n in names if n in there), None)
