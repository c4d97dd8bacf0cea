"""Table paths: the files that a path, a folder, a glob or a list of them stands for."""

__all__ = ["Paths", "TableFile", "file_kind", "is_paths", "shown_name", "table_paths"]

import glob
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeGuard

from harmonrank.data.reading.stores import StoreFile, store_files
from harmonrank.support.errors import DataError
from harmonrank.support.storage.staging import is_utf8
from harmonrank.support.storage.urls import is_url, local_path, shown_url, urls_of

Paths = str | Path | Sequence[str | Path]
"""A file, a folder, a glob, several of them separated by commas, or a list of such; or URLs."""

TableFile = Path | StoreFile
"""A file of a table, of this machine or of a store."""

_ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz"),
    "arrow": (".arrow", ".feather", ".ipc"),
}


def file_kind(path: TableFile) -> str:
    """Return parquet, csv or arrow by the file's ending."""
    kind = _kind(path)
    if kind is None:
        known = ", ".join(chain(*_ENDINGS.values()))
        raise DataError(f"'{path}' has no known ending; expected one of {known}.")
    if isinstance(path, StoreFile):
        if kind != "parquet":
            raise DataError(
                f"Only parquet is read by URL. Got {kind} ('{path}'); copy it to this machine."
            )
        return kind
    if not is_utf8(path):
        raise DataError(f"'{path.absolute()}' is not UTF-8; rename what is not.")
    return kind


def shown_name(name: str | Path) -> str:
    """Return what an error calls a path or a URL, which may hold a password or a signature."""
    return shown_url(name.strip()) if isinstance(name, str) and is_url(name) else str(name)


def _kind(path: TableFile) -> str | None:
    name = path.name.lower()
    return next((kind for kind, ends in _ENDINGS.items() if name.endswith(ends)), None)


def is_paths(source: Any) -> TypeGuard[Paths]:
    """Tell whether a source is named by paths."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(part, str | Path) for part in source)
    return isinstance(source, str | Path)


def table_paths(source: Paths) -> tuple[str, tuple[TableFile, ...]]:
    """Return the kind of the files that a source stands for, and the files in their order.

    The files of a folder, at any depth, and of a glob are sorted by name; a list keeps its order.
    Names that begin with a dot or an underscore are left out, as writers use them for files that
    are incomplete or hold no rows. In a folder, names without a known ending are left out too.

    Raises:
        DataError: There is no such file, none in a folder, or there are several kinds of them.
    """
    parts: Sequence[Any] = source if isinstance(source, list | tuple) else [source]
    files = tuple(file for part in parts for file in _named(part))
    if len(set(files)) < len(files):
        twice = next(file for file in files if files.count(file) > 1)
        raise DataError(f"'{twice}' is named twice; each file must be named once.")
    kinds = {file_kind(file): file for file in files}
    if len(kinds) > 1:
        (first, a), (second, b), *_ = kinds.items()
        raise DataError(
            f"The parts of one table must be of one kind. Got {first} ('{a}') and {second} "
            f"('{b}'); name those of one kind, as in 'log/*.{first}'."
        )
    return next(iter(kinds)), files


def _named(part: str | Path) -> Sequence[TableFile]:
    if not (isinstance(part, str) and is_url(part)):
        return _files(Path(str(part)))
    return [file for url in urls_of(part.strip()) for file in _stored(url)]


def _stored(url: str) -> Sequence[TableFile]:
    if (path := local_path(url)) is not None:
        return _files(path)
    return store_files(url)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        tables = sorted(file for file in _inside(path) if _kind(file) is not None)
        if not tables:
            raise DataError(
                f"'{path}' is a folder without a table; expected parquet, csv or arrow files whose "
                "names do not begin with a dot or an underscore."
            )
        return tables
    if path.exists():
        return [path]
    if any(sign in str(path) for sign in "*?["):
        return _matches(path)
    if "," in str(path):
        return [file for part in str(path).split(",") for file in _files(Path(part.strip()))]
    if not path.suffix:
        raise DataError(f"There is no file or folder '{path}'; check its name.")
    file_kind(path)  # what can be no table at all is said first
    raise DataError(f"There is no file '{path}'; check its name.")


def _matches(pattern: Path) -> list[Path]:
    # Not `Path.glob`, whose patterns begin in a folder; this one may be absolute or not.
    names = glob.glob(str(pattern), recursive=True)  # noqa: PTH207
    matches = sorted(map(Path, names))
    seen = [path for path in matches if not path.name.startswith((".", "_"))]
    if not seen:
        raise DataError(f"There is no file like '{pattern}'; check the pattern.")
    return list(dict.fromkeys(file for path in seen for file in _files(path)))


def _inside(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith((".", "_")):
            continue
        if path.is_dir():
            yield from _inside(path)
        elif path.is_file():
            yield path
