"""Declared logs, your own and those whose declaration is in this package."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from harmonrank.support import DataError, UsageError, did_you_mean, shown
from harmonrank_lab.upstream.logs import _declared_tables as files_of
from harmonrank_lab.upstream.logs import _rules
from harmonrank_lab.upstream.logs._columns import LogColumns, TableSource
from harmonrank_lab.upstream.logs._declaration import Declaration, read_declaration
from harmonrank_lab.upstream.logs._declared_tables import declared_columns, declared_table
from harmonrank_lab.upstream.logs._rules import Made, RowClock

_HOUR_MS, _HOURS = 3_600_000, 2_000_000
_ROLES = ("labels", "categorical", "multi", "numeric", "feedback", "history")

SHIPPED = ("kuairand", "tenrec")
"""Public logs whose declarations are here."""
TENREC_FILES = ("QK-video.csv", "QB-video.csv", "sbr_data_1M.csv", "ctr_data_1M.csv")


def find_declared(
    folder: str | Path,
    declaration: Declaration | str | Path,
    *,
    leave_out: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> "LogSource":
    """Find the files of a declared log in a folder.

    Args:
        folder: Where they are.
        declaration: What is in them, or the TOML file that says so.
        leave_out: Pattern of files that are not to be read.
        settings: What the caller changed; a digest of the declaration if left out.

    Raises:
        DataError: A file or a column is missing, or the declaration is wrong.
    """
    d = declaration if isinstance(declaration, Declaration) else read_declaration(declaration)
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"There is no folder '{folder}'; check its name.")
    home, files = files_of.log_files(folder, d)
    files = [f for f in files if leave_out is None or not fnmatchcase(f.name, leave_out)]
    if not files:
        raise files_of.no_files(folder, d)
    both = (("users", d.user, d.users), ("items", d.item, d.items))
    sides = [(part, key, rules) for part, key, rules in both if rules is not None]
    paths = [files_of.table_file(folder, home, d, rules) for *_, rules in sides]
    joined = {n: files_of.table_file(folder, home, d, rules) for n, rules in d.joins.items()}
    files_of.one_version(d, [*files, *paths, *joined.values()])
    tables = tuple(
        declared_table(d, rules, f"{part}.parquet", key, path)
        for (part, key, rules), path in zip(sides, paths, strict=True)
    )
    truth = folder / "truth.parquet"
    if settings is None:
        settings = {"declaration": sha256(msgspec.json.encode(d)).hexdigest()[:16]}
    return LogSource(d, files, joined, tables, truth if truth.is_file() else None, settings)


class LogSource:
    """The files of a raw log, and how their rows become ours.

    Attributes:
        files: Those of the rows, in order.
        columns: Which column is what, but for tables and truth.
        reads: The source columns that `clean` needs.
        texts: Those that are read as text.
        tables: Features of users and items.
        joined: Files of other tables, whose features become those of the rows.
        truth: File of the true probabilities of all rows, where the log was simulated.
        settings: What the caller chose.
    """

    def __init__(
        self,
        declared: Declaration,
        files: Sequence[Path],
        joined: Mapping[str, Path],
        tables: tuple[TableSource, ...],
        truth: Path | None,
        settings: Mapping[str, object],
    ) -> None:
        self.files, self.tables, self.joined = tuple(files), tables, tuple(joined.values())
        self.truth, self.settings = truth, settings
        self._declared = d = declared
        self._there = there = files_of.shared_columns(d, files)
        named = {"user": [d.user], "item": [d.item], "time": [d.time] if d.time else []}
        named |= {role: getattr(d, role) for role in _ROLES}
        made = {r: declared_columns(d, d, r, names, files[0], there) for r, names in named.items()}
        if not made["labels"]:
            raise DataError(
                f"'{files[0]}' has none of the objectives; expected one of {', '.join(d.labels)}."
            )
        self.clock = None
        if d.time is not None:
            (time,) = made["time"]
            self.clock = RowClock(time.source, time.rule, d.utc_offset)
        self._joins = [
            files_of.joined_table(d, name, d.joins[name], path, files[0], there)
            for name, path in joined.items()
        ]
        self._user, request = made["user"][0], self._request(there, files[0])
        self.columns = self._columns(made)
        order = ["user", "item", "time", "request", "categorical", "multi", "numeric", "labels"]
        self._made = [
            m for r in [*order, "feedback", "history"] for m in (made | request).get(r, [])
        ]
        read = [m for m in [*self._made, *(join.on for join in self._joins)] if m.source]
        self.reads = tuple(dict.fromkeys(m.source for m in read))
        self.texts = {m.source for m in read if not m.rule.whole or m.role == "multi"}
        for m in read:
            if m.rule.whole and m.role != "multi" and m.source in self.texts:
                raise DataError(
                    f"'{m.source}' is declared as a whole number for '{m.name}' and as text for "
                    "another column; give both a whole `type`, or neither."
                )

    def _request(self, there: list[str], file: Path) -> dict[str, list[Made]]:
        d = self._declared
        by_user = d.request is None or d.request == d.user
        if d.request is None or by_user or d.rule(d.request).transform == "user_hour":
            return {}
        return {"request": declared_columns(d, d, "request", [d.request], file, there)}

    def _columns(self, by_role: Mapping[str, list[Made]]) -> LogColumns:
        d, names = self._declared, {r: tuple(m.name for m in made) for r, made in by_role.items()}
        tables = [join.source.table for join in self._joins]
        return LogColumns(
            kind=d.kind,
            user=d.user,
            item=d.item,
            time=d.time,
            request=d.request or ("request" if d.time else d.user),
            objectives=names["labels"],
            categorical=sum((t.categorical for t in tables), names["categorical"] + names["multi"]),
            numeric=sum((t.numeric for t in tables), names["numeric"]),
            feedback=names["feedback"],
            history=names["history"],
        )

    def clean(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the columns to be written."""
        rows = _rules.cleaned(frame, [*self._made, *(join.on for join in self._joins)], self.clock)
        for join in self._joins:
            rows = join.join(rows).drop(join.on.name)
        d = self._declared
        if self.columns.request in rows.columns:
            return rows
        hours = pl.col(d.time or "") // _HOUR_MS
        place = rows.columns.index(d.time or "") + 1
        made = rows.select((pl.col(d.user) * _HOURS + hours).alias(self.columns.request))
        return rows.insert_column(place, made.to_series())

    def count(self, frame: pl.DataFrame) -> dict[str, int]:
        """Return how often each oddity was met."""
        return _rules.counted(frame, self._made, self._declared, self.clock)

    @property
    def _by_time(self) -> bool:
        return (self._declared.split or ("time" if self._declared.time else "user")) == "time"

    @property
    def key_column(self) -> str:
        """The source column that decides a row's part."""
        return self.clock.column if self._by_time and self.clock else self._user.source

    def key(self, column: pl.Series) -> np.ndarray:
        """Return what decides a row's part, from that column: its second, or a hash of its user."""
        if not self._by_time or self.clock is None:
            user = _rules.cleaned(column.to_frame(), [self._user], None).to_series()
            return _rules.user_bucket(user.to_numpy())
        (time,) = [m for m in self._made if m.role == "time"]
        ms = _rules.cleaned(column.to_frame(), [time], self.clock).to_series()
        lost = column.is_not_null() & ms.is_null()
        if lost.any():
            raise DataError(
                f"Time column '{column.name}' must hold ISO 8601 text. Got "
                f"{shown(column.filter(lost)[0])}; declare its `transform` (ms or s) or `format`."
            )
        return np.asarray(ms.to_numpy() // 1000)

    @property
    def split_by(self) -> str:
        """What the split goes by, in words."""
        if self._by_time:
            return f"{self._declared.time}, by whole seconds"
        return f"a hash of {self._declared.user}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the result has to know."""
        d, made = self._declared, {m.name for m in self._made}
        said = [n for n in d.notes if n.when is None and n.unless is None]
        fit = [n for n in d.notes if n.when in (None, *self._there) and n.unless not in self._there]
        others = [n for n in fit if n not in said]
        wanted = [*d.labels, *d.categorical, *d.numeric, *d.feedback, *d.multi]
        lacking = [name for name in wanted if name not in made]
        text = f"The log has no {', '.join(lacking)}: left out of the rows and of log.toml."
        return (*(n.text for n in said), *[text] * bool(lacking), *(n.text for n in others))


@cache
def shipped(kind: str) -> Declaration:
    """Return the declaration of a public log."""
    return read_declaration(Path(__file__).parent / "declarations" / f"{kind}.toml")


def find_kuairand(folder: str | Path, *, random: bool = True) -> LogSource:
    """Find the files of one version of KuaiRand in a folder or in its folder `data`.

    Args:
        folder: Where the download was unpacked.
        random: Also read log_random_*, whose videos were shown at random.

    Raises:
        DataError: A file or a column is missing.
    """
    left_out = None if random else "*log_random*"
    declared = shipped("kuairand")
    return find_declared(folder, declared, leave_out=left_out, settings={"random": random})


def find_tenrec(folder: str | Path, *, file: str | None = None, long_view: int = 2) -> LogSource:
    """Find a video file of Tenrec in a folder.

    Args:
        folder: Where the download was unpacked.
        file: Which file; needed only where there is more than one, since they overlap.
        long_view: A view is long if the user entered the video at least so often.

    Raises:
        DataError: The file or a column is missing.
        UsageError: There is more than one file, and none is named.
    """
    if long_view < 1:
        raise UsageError(f"`long_view` must be at least 1. Got {long_view}.")
    if file is not None and file not in TENREC_FILES:
        raise UsageError(f"Tenrec has no video file '{file}'. {did_you_mean(file, TENREC_FILES)}")
    declared = shipped("tenrec")
    change = msgspec.structs.replace
    first, *others = declared.notes
    said = change(first, text=first.text.replace("at least 2", f"at least {long_view}"))
    rule = change(declared.rule("long_view"), at_least=long_view)
    columns = {**declared.columns, "long_view": rule}
    files = declared.files if file is None else [file]
    declared = change(declared, files=files, columns=columns, notes=[said, *others])
    return find_declared(folder, declared, settings={"long_view": long_view})
