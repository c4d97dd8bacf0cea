"""Stores: parquet files that are named by URL, read by ranges of bytes, a row group at a time."""

__all__ = ["StoreFile", "store_files"]

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any
from urllib.parse import urlsplit

import polars as pl
from polars.io.plugins import register_io_source
from polars.selectors import by_name

from harmonrank.data.reading.store_systems import WEB, arrow_parquet, asking, system_of
from harmonrank.support.storage.urls import has_pattern, protocol_of, shown_url

# The row group that was read last, of all files, with the footer of its file.
_last: list[tuple[Any, tuple[int, tuple[str, ...]], pl.DataFrame]] = []


@dataclass(frozen=True)
class StoreFile:
    """A parquet file of a store, such as a bucket or a web server.

    Only its URL travels to other processes; each opens the store with its own credentials, which
    are those that the store's package finds there.

    Attributes:
        url: Where it is; printed without a user, a password or a query.
    """

    url: str

    def __str__(self) -> str:
        return shown_url(self.url)

    __repr__ = __str__

    def __reduce__(self) -> tuple[type["StoreFile"], tuple[str]]:
        return StoreFile, (self.url,)

    @property
    def name(self) -> str:
        """The last part of its path."""
        return str(self).rstrip("/").rpartition("/")[2]

    @property
    def size(self) -> int:
        """How many bytes it has."""
        with asking(self.url):
            system, path = system_of(self.url)
            return int(system.info(path)["size"] or 0)

    @property
    def stamp(self) -> int:
        """A number that changes when the file is written again, if its store tells."""
        with asking(self.url):
            system, path = system_of(self.url)
            return int(system.checksum(path)) & (1 << 53) - 1

    @cached_property
    def _footer(self) -> Any:
        with self._opened() as parquet:
            return parquet.metadata

    @contextmanager
    def _opened(self, footer: Any = None) -> Iterator[Any]:
        with asking(self.url):
            parquet = arrow_parquet(self.url)
            system, path = system_of(self.url)
            # Without a cache, what is asked for is what is sent: neighbouring ranges are merged
            # by pyarrow, which knows where columns are.
            with system.open(path, "rb", cache_type="none") as stream:
                yield parquet.ParquetFile(stream, metadata=footer, pre_buffer=True)

    @property
    def rows(self) -> int:
        """How many rows it has, as its footer says."""
        return int(self._footer.num_rows)

    @property
    def metadata(self) -> dict[str, str]:
        """Keys and values that are kept with the file."""
        kept: Mapping[bytes, bytes] = self._footer.metadata or {}
        return {key.decode(errors="replace"): kept[key].decode(errors="replace") for key in kept}

    @cached_property
    def types(self) -> dict[str, pl.DataType]:
        """The type of each column."""
        with asking(self.url):
            return dict(_frame(self._footer.schema.to_arrow_schema().empty_table()).schema)

    def read(self, first: int, rows: int, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return some rows; only the row groups that hold them are sent."""
        names = tuple(self.types if columns is None else columns)
        counts = [self._footer.row_group(i).num_rows for i in range(self._footer.num_row_groups)]
        end, edges = first + rows, accumulate(counts, initial=0)
        parts = [
            self._group(number, names).slice(max(first - low, 0), min(end, high) - max(first, low))
            for number, (low, high) in enumerate(pairwise(edges))
            if low < end and high > first
        ]
        if not parts:
            return pl.DataFrame(schema={name: self.types[name] for name in names})
        return parts[0] if len(parts) == 1 else pl.concat(parts)

    def _group(self, number: int, columns: tuple[str, ...]) -> pl.DataFrame:
        """Return columns of a row group; the last one is kept, as blocks end in the midst of it."""
        footer, key = self._footer, (number, columns)
        for last, known, frame in _last:
            if last is footer and known == key:
                return frame
        with self._opened(footer) as parquet:
            table = parquet.read_row_group(number, columns=list(columns))
            frame = _frame(table).select(by_name(*columns))
        _last[:] = [(footer, key, frame)]
        return frame

    def scan(self) -> pl.LazyFrame:
        """Return all rows, to be read when they are needed, a row group at a time."""

        def groups(
            columns: list[str] | None, keep: pl.Expr | None, rows: int | None, _: int | None
        ) -> Iterator[pl.DataFrame]:
            left = self.rows if rows is None else rows
            for number in range(self._footer.num_row_groups):
                if left <= 0:
                    return
                frame = self._group(number, tuple(columns or self.types)).head(left)
                left -= frame.height
                yield frame if keep is None else frame.filter(keep)

        return register_io_source(groups, schema=self.types)


def store_files(url: str, is_table: Callable[[StoreFile], bool]) -> list[StoreFile] | None:
    """Return the files that a URL stands for, sorted by name; none if it is a file itself.

    Those whose name, or that of a folder below the URL, begins with a dot or an underscore are
    left out; of a folder also what is no table.

    Raises:
        DataError: There is nothing, it may not be read, or the store is unknown.
    """
    with asking(url):
        system, path = system_of(url)
        system.invalidate_cache()  # what was listed before may have changed since
        if has_pattern(url):
            found = system.glob(path, detail=True)
            files: dict[StoreFile, None] = {}
            for name in sorted(found):
                if _hidden(name.rpartition("/")[2]):
                    continue
                if found[name]["type"] == "directory":
                    inside = _inside(url, system, path, name)
                    files |= dict.fromkeys(filter(is_table, inside))
                else:
                    files[StoreFile(_url_of(url, system, path, name))] = None
            return list(files)
        if _is_page(url) or system.info(path)["type"] == "directory":
            return list(filter(is_table, _inside(url, system, path, path)))
    return None


def _is_page(url: str) -> bool:
    # A web server knows no folders, only pages with links.
    path = urlsplit(url).path
    return protocol_of(url) in WEB and (path.endswith("/") or "." not in path.rpartition("/")[2])


def _inside(url: str, system: Any, path: str, folder: str) -> list[StoreFile]:
    root = folder.rstrip("/")
    found = [
        name
        for name in sorted(system.find(folder))
        if not any(map(_hidden, name.removeprefix(root).split("/")))
    ]
    return [StoreFile(_url_of(url, system, path, name)) for name in found]


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _url_of(url: str, system: Any, path: str, found: str) -> str:
    """Return the URL of what was found beside or below a path, with the same host and user."""
    url, tail = url.rstrip("/"), path.strip("/")
    if url.endswith(tail):
        return url[: len(url) - len(tail)] + found.lstrip("/")
    return str(system.unstrip_protocol(found))


def _frame(table: Any) -> pl.DataFrame:
    found = pl.from_arrow(table)
    assert isinstance(found, pl.DataFrame), "a table becomes a frame"
    return found
