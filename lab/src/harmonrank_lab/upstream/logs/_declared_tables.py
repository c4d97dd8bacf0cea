"""Declared tables: features of users, of items, or of whatever else a row refers to."""

__all__ = ["JoinedTable", "declared_columns", "declared_table", "joined_table"]

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from harmonrank.data.reading import column_names
from harmonrank.support.errors import DataError, did_you_mean
from harmonrank_lab.upstream.logs._chunks import cut, read_chunk
from harmonrank_lab.upstream.logs._columns import FeatureTable
from harmonrank_lab.upstream.logs._declaration import (
    ColumnRule,
    Declaration,
    JoinRules,
    Roles,
    TableRules,
)
from harmonrank_lab.upstream.logs._rules import Made, cleaned, counted, resolved
from harmonrank_lab.upstream.logs._source import TableSource

_CHUNK_BYTES = 16 << 20


def declared_columns(
    declared: Declaration,
    roles: Roles,
    role: str,
    names: Sequence[str],
    file: Path,
    there: list[str],
) -> list[Made]:
    """Return the columns that a role becomes, or say which one is missing."""
    made: list[Made] = []
    for name in names:
        try:
            made += resolved(roles, role, name, there)
        except KeyError as missing:
            (lacking,) = missing.args
            if declared.download is not None:
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
    found = {
        role: declared_columns(declared, rules, role, getattr(rules, role), path, there)
        for role in ("categorical", "multi", "numeric")
    }
    (own,) = declared_columns(declared, rules, "id", [rules.id], path, there)
    own = Made(key, "id", own.rule, own.source)
    made = [own, *found["categorical"], *found["multi"], *found["numeric"]]
    names = {role: tuple(m.name for m in columns) for role, columns in found.items()}
    return TableSource(
        path,
        FeatureTable(file, key, names["categorical"] + names["multi"], names["numeric"]),
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
        reads = self.source.reads
        chunks = [
            read_chunk(chunk, reads, frozenset(reads))
            for chunk in cut(self.source.path, _CHUNK_BYTES)
        ]
        if not chunks:
            raise DataError(f"'{self.source.path}' has no rows; expected at least one.")
        return self.source.clean(pl.concat(chunks)).unique(self.on.name, keep="first")

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
