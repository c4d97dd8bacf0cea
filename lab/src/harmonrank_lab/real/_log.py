"""Real logs: which files a log has, which column is what, and how its rows are cut by time."""

import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec
import numpy as np
import polars as pl
from msgspec import Meta, Struct

from harmonrank.data import hash_shares
from harmonrank.support import DataError, UsageError, did_you_mean
from harmonrank.support.storage import read_toml
from harmonrank_lab.real._unpack import UNPACK
from harmonrank_lab.upstream import logs
from harmonrank_lab.upstream.logs import Declaration, FeatureTable, ImportedLog

_FOLDER = Path(__file__).parent / "logs"
_DAY_MS = 86_400_000
LOGS = tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))
"""The logs that are known by name."""


class RealLog(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A log from which upstream scores are made by time.

    Attributes:
        title: What it is called in a table.
        folder: Its folder below the one that is named.
        declaration: Its columns, as `harmonrank_lab.upstream.logs` understands them.
        context: Columns of users and of the moment, which the fusion sees beside the scores.
        base: A declaration that ships with the laboratory, of which `declaration` changes parts.
        unpack: What turns its files, in which a request is one line, into a line per item.
        expects: Its official files, where it is unpacked.
        item_context: Columns of items that the fusion may see too.
        request: Columns that together tell a request; 'day' is the day by the users' clock and
            'part' the part of the log. The declared request if left out.
        unwanted: Labels that count against a row.
        begins: The first days of the upstream models', the fusions' and the test rows; rows
            before are history. Four parts of equal size if left out.
        earlier: A table of older rows with some of the labels, which may be absent.
        rates: What the rates of users and items are taken from: 'history', or 'daily', all rows
            of earlier days.
        rate_keys: Columns beside user and item that have rates.
        upstream_tables: Whose features the upstream models see, beside those of the row.
    """

    title: str
    folder: str
    declaration: dict[str, Any]
    context: list[str]
    base: str | None = None
    unpack: Literal["mind", "ebnerd", "trivago", "hillstrom", "kuairand-earlier"] | None = None
    expects: list[str] = []
    item_context: list[str] = []
    request: list[str] = []
    unwanted: list[str] = []
    begins: Annotated[list[date], Meta(max_length=3)] = []
    earlier: str | None = None
    rates: Literal["history", "daily"] = "history"
    rate_keys: list[str] = []
    upstream_tables: tuple[Literal["users", "items"], ...] = ("users", "items")

    def home(self, data: Path) -> Path:
        """Return the folder of its files: its own below `data`, or `data` itself."""
        below = data / self.folder
        return below if below.is_dir() else data

    def declared(self) -> Declaration:
        """Return the declaration of its rows."""
        parts = {} if self.base is None else msgspec.to_builtins(logs.shipped(self.base))
        for key, value in self.declaration.items():
            both = isinstance(value, dict) and isinstance(parts.get(key), dict)
            parts[key] = {**parts[key], **value} if both else value
        try:
            declared = msgspec.convert({"kind": self.base or self.folder, **parts}, Declaration)
        except msgspec.ValidationError as error:
            raise DataError(f"The declaration of {self.title} is none: {error}.") from None
        if declared.time is None and (self.begins or self.rates == "daily"):
            raise DataError(f"{self.title} needs a clock; declare `time`, or leave out days.")
        return declared

    def read(self, data: Path, most_rows: int) -> "RealRows":
        """Read its rows; of a larger log those of users drawn by a hash of their id."""
        home = self.home(data)
        declared = self.declared()
        with tempfile.TemporaryDirectory() as name:
            folder, source = Path(name), home
            if self.unpack is not None:
                source = folder / "unpacked"
                source.mkdir()
                self._check_files(home)
                for part, frame in UNPACK[self.unpack](home).items():
                    frame.write_parquet(source / f"{part}.parquet")
            logs.import_log(logs.find_declared(source, declared), folder / "imported")
            rows = RealRows.of(self, ImportedLog.open(folder / "imported"), declared, most_rows)
        earlier = None if self.earlier is None else home / self.earlier
        return rows.after(earlier) if earlier is not None and earlier.is_file() else rows

    def _check_files(self, home: Path) -> None:
        for pattern in self.expects:
            if not any(home.glob(pattern)):
                raise DataError(
                    f"'{home}' holds no {self.title}: expected its official files "
                    f"{', '.join(self.expects)}; nothing is downloaded for you."
                )


class RealRows(Struct, frozen=True):
    """Rows of a real log, older ones first.

    Attributes:
        frame: With the columns `request_id`, `part` (0 history, 1 upstream, 2 fusion, 3 test) and,
            of a log with a clock, `day`.
        earlier: Older rows with some of the columns, or None.
        keys: Columns that have rates: the user, the item, and others.
        labels: What may be an objective.
        categorical: Features that are text or codes.
        numeric: Features that are numbers.
        time: The column that tells when a row was shown, or None.
    """

    log: RealLog
    frame: pl.DataFrame
    keys: tuple[str, ...]
    labels: tuple[str, ...]
    categorical: tuple[str, ...]
    numeric: tuple[str, ...]
    earlier: pl.DataFrame | None = None
    time: str | None = None

    @classmethod
    def of(cls, log: RealLog, imported: ImportedLog, declared: Declaration, most_rows: int) -> Self:
        """Join users and items to the rows of an imported log, and cut it."""
        columns, share = imported.columns, most_rows / max(sum(imported.rows.values()), 1)
        pieces = []
        for batch in (b for part in logs.PARTS for b in imported.batches(part)):
            drawn = hash_shares(batch[columns.user].to_numpy(), "real") < share
            pieces.append(batch.filter(pl.Series(drawn)))
        frame = pl.concat(pieces).sort(columns.time or columns.row, columns.row)
        if columns.time is not None:
            shown = [columns.user, columns.item, columns.time]
            frame = frame.unique(shown, keep="first", maintain_order=True)
            day = (pl.col(columns.time) + int(declared.utc_offset * 3_600_000)) // _DAY_MS
            frame = frame.with_columns(day=day)
        categorical, numeric = [*columns.categorical], [*columns.numeric]
        tables = {"users": imported.users(), "items": imported.items()}
        for name, table in tables.items():
            about: FeatureTable | None = getattr(columns, name)
            if table is None or about is None:
                continue
            frame = frame.join(table, on=about.id, how="left", maintain_order="left")
            if name in log.upstream_tables:
                categorical += about.categorical
                numeric += about.numeric
        place = "day" if log.begins else columns.time
        frame = frame.with_columns(part=_parts(frame, place, columns.user, log.begins))
        for column in (*log.request, *log.rate_keys, *log.context, *log.item_context):
            if column not in frame.columns:
                hint = did_you_mean(column, frame.columns)
                raise DataError(f"{log.title} has no column '{column}'. {hint}")
        request = pl.struct(log.request or [columns.request]).rank("dense").cast(pl.Int64)
        frame, keys = frame.with_columns(request_id=request), (columns.user, columns.item)
        features = tuple(categorical), tuple(numeric)
        every = (*keys, *log.rate_keys)
        return cls(log, frame, every, columns.objectives, *features, time=columns.time)

    def after(self, path: Path) -> "RealRows":
        """Return the same rows with older ones from a table, which come before all of them."""
        table = pl.read_parquet(path)
        user, item, *others = self.keys
        columns = [n for n in (user, item, *self.labels) if n in table.columns]
        items = self.frame.select(item, *others).unique(item)
        older = table.select(columns).cast({user: pl.Int64, item: pl.Int64})
        older = older.join(items, on=item, how="left", maintain_order="left")
        return msgspec.structs.replace(self, earlier=older)

    def known(self) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """Yield rows to be given rates, and those that came before them and so may give them."""
        columns = [*self.keys, *self.labels]
        before = [] if self.earlier is None else [self.earlier]
        rows = self.frame.filter(pl.col("part") > 0)
        if self.log.rates == "history":
            history = self.frame.filter(pl.col("part") == 0).select(columns)
            yield rows, pl.concat([*before, history], how="diagonal_relaxed")
            return
        for (day,), today in rows.group_by("day", maintain_order=True):
            known = self.frame.filter(pl.col("day") < day).select(columns)
            yield today, pl.concat([*before, known], how="diagonal_relaxed")


def _parts(frame: pl.DataFrame, place: str | None, user: str, begins: list[date]) -> pl.Series:
    """Return the part of each row: by day, by time, or by user where there is no clock."""
    if begins:
        cuts = np.array([day.toordinal() - date(1970, 1, 1).toordinal() for day in begins])
    values = hash_shares(frame[user].to_numpy(), "part") if place is None else frame[place]
    if not begins:
        ordered = np.sort(np.asarray(values))
        cuts = ordered[[len(ordered) * k // 4 for k in (1, 2, 3)]]
    return pl.Series((np.asarray(values)[:, None] >= cuts).sum(axis=1))


def real_log(name: str) -> RealLog:
    """Return a log by its name, or as a TOML file tells it."""
    path = Path(name) if name.endswith(".toml") else _FOLDER / f"{name}.toml"
    if path.parent == _FOLDER and name not in LOGS:
        raise UsageError(
            f"There is no real log '{name}'. {did_you_mean(name, LOGS)} For a log of your own, "
            "name a TOML file."
        )
    try:
        return msgspec.convert(read_toml(path, "a real log"), RealLog)
    except FileNotFoundError:
        raise DataError(f"There is no file '{path}'; check its name.") from None
    except msgspec.ValidationError as error:
        raise DataError(f"'{path}' tells no real log: {error}.") from None
