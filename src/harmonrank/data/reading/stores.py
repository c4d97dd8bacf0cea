"""Stores: parquet files named by URL, which Polars reads by ranges of bytes."""

__all__ = ["StoreFile", "store_files", "store_sentence"]

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import polars as pl
from polars.selectors import by_name

from harmonrank.support.errors import DataError
from harmonrank.support.storage.urls import has_pattern, protocol_of, shown_url, without_secrets

_WEB = ("http", "https")
_BUCKETS = ("s3", "s3a", "gs", "gcs", "az", "azure", "adl", "abfs", "abfss", "hf")
_AT_ONCE = 1 << 20  # Blocks end in the midst of row groups, each of which is sent whole.


@dataclass(frozen=True)
class StoreFile:
    """A parquet file of a store, such as a bucket or a web server.

    Only its URL travels to other processes; each opens the store with its own credentials, which
    are those that Polars finds there.

    Attributes:
        url: Where it is; printed without a user, a password or a query.
    """

    url: str
    _last: dict[tuple[int, tuple[str, ...]], pl.DataFrame] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __str__(self) -> str:
        return shown_url(self.url)

    __repr__ = __str__

    def __reduce__(self) -> tuple[type["StoreFile"], tuple[str]]:
        return StoreFile, (self.url,)

    @property
    def name(self) -> str:
        """The last part of its path."""
        return str(self).rstrip("/").rpartition("/")[2]

    def read(self, first: int, rows: int, columns: Sequence[str]) -> pl.DataFrame:
        """Return some rows; those around them are kept for the next call."""
        start = first - first % _AT_ONCE
        parts = [
            self._piece(low, tuple(columns)).slice(
                max(first - low, 0), first + rows - max(first, low)
            )
            for low in range(start, max(first + rows, start + 1), _AT_ONCE)
        ]
        return parts[0] if len(parts) == 1 else pl.concat(parts)

    def _piece(self, low: int, columns: tuple[str, ...]) -> pl.DataFrame:
        if (low, columns) not in self._last:
            lazy = pl.scan_parquet(self.url, glob=False).select(by_name(*columns))
            frame = lazy.slice(low, _AT_ONCE).collect()
            self._last.clear()
            self._last[low, columns] = frame
        return self._last[low, columns]


def store_files(url: str) -> list[StoreFile]:
    """Return the files that a URL stands for, sorted by name.

    Of a folder they are the parquet files at any depth. What begins with a dot or an underscore is
    left out.

    Raises:
        DataError: There is nothing, it may not be read, or the store is unknown.
    """
    name, protocol = shown_url(url), protocol_of(url)
    if protocol not in (*_BUCKETS, *_WEB):
        raise DataError(
            f"'{name}' is of a protocol that is not known, '{protocol}'; expected s3, gs, az, hf, "
            "https or file."
        )
    folder = url.endswith("/") or "." not in name.rpartition("/")[2]
    if not folder and not has_pattern(url):
        return [StoreFile(url)]
    if protocol in _WEB:
        raise DataError(
            f"'{name}' is no file, and a web server does not list its files; name each of them, "
            "separated by commas."
        )
    pattern = f"{url.rstrip('/')}/**/*.parquet" if folder and not has_pattern(url) else url
    root = re.split(r"[*?\[]", pattern)[0].rpartition("/")[0]
    paths = [
        path for path in _listed(pattern, name) if not re.search(r"/[._]", path.removeprefix(root))
    ]
    if not paths and has_pattern(url):
        raise DataError(f"There is no file like '{name}'; check the pattern.")
    if not paths:
        raise DataError(
            f"'{name}' is a folder without a table; expected parquet files whose names do not "
            "begin with a dot or an underscore."
        )
    return [StoreFile(path) for path in sorted(paths)]


def _listed(pattern: str, name: str) -> list[str]:
    """Return the files like a pattern that have rows; their footers are read, and nothing else."""
    # To Polars a question mark begins a query.
    lazy = pl.scan_parquet(
        pattern.replace("?", "*"), include_file_paths="path", extra_columns="ignore"
    )
    try:
        paths = lazy.select(pl.col("path").unique()).collect(engine="streaming")["path"].to_list()
    except (pl.exceptions.PolarsError, OSError) as error:
        if "expanded paths were empty" in str(error):
            return []
        raise DataError(store_sentence(name, error)) from None
    like = pattern.replace("**/", "*")
    return [path for path in paths if "?" not in like or fnmatchcase(path, like)]


def store_sentence(name: str, error: BaseException) -> str:
    """Say in one sentence what went wrong with a file of a store, without any secret of its URL."""
    if isinstance(error, FileNotFoundError):
        return f"There is no file '{name}'; check its name."
    if isinstance(error, PermissionError):
        return (
            f"'{name}' may not be read: its store refuses permission; check the credentials that "
            "it finds in the environment or in its own files."
        )
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    # A path may be told without its host.
    reason = re.sub(r"\?[^\s'\"]*=[^\s'\")]*", "", without_secrets(line)).rstrip(".:")
    return f"'{name}' cannot be read as parquet: {reason}; check the URL, or write the file again."
