"""Declaration: which files a raw log has, which column is what, and how values are read."""

__all__ = [
    "ColumnRule",
    "Declaration",
    "Download",
    "JoinRules",
    "Kind",
    "Note",
    "Roles",
    "TableRules",
    "Transform",
]

from fnmatch import fnmatchcase
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

Name = Annotated[str, Meta(min_length=1)]
Kind = Literal["uint8", "int16", "int32", "int64", "float32", "float64", "text"]
Transform = Literal[
    "id",
    "ms",
    "s",
    "iso",
    "text",
    "code",
    "not_negative",
    "hour",
    "weekday",
    "hourmin",
    "number",
    "positive",
    "day",
    "label",
    "not",
    "user_hour",
]


class ColumnRule(Struct, frozen=True, forbid_unknown_fields=True, rename={"source": "from"}):
    """How a column is made of one in the file.

    Attributes:
        source: Its name in the file, or several of which the first that is there is taken; the
            column's own name if left out.
        transform: What is done to it; see `harmonrank_lab.upstream.logs._transforms`.
        type: What it is written as; one of whole numbers is read as such.
        missing: What stands for a missing value.
        at_least: Of a label: 1 from this value up.
        format: Of a time or a day that is text in another form.
        separator: Between the values of a column with many.
        keep: How many of them are kept, from the first on.
        otherwise: The rule where the file has no such column.
    """

    source: Name | list[Name] | None = None
    transform: Transform | None = None
    type: Kind | None = None
    missing: int | float | str | None = None
    at_least: float | None = None
    format: str | None = None
    separator: Name = ","
    keep: Annotated[int, Meta(ge=1, le=20)] = 3
    otherwise: "ColumnRule | None" = None

    @property
    def whole(self) -> bool:
        """Whether the file holds whole numbers, which are read as such."""
        return self.type is not None and "int" in self.type


class Roles(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Features of a row, a user or an item.

    Attributes:
        categorical: Text or codes.
        codes: Those of the categorical ones that are whole numbers.
        numeric: Numbers.
        multi: Columns with many values each, of which the first few are kept as columns.
        optional: Columns that may be absent, by name or pattern.
        count_missing: Columns whose missing values are counted, all if left out; those that share
            a pattern are counted together.
        columns: Rules by column.
    """

    categorical: list[Name] = []
    codes: list[Name] = []
    numeric: list[Name] = []
    multi: list[Name] = []
    optional: list[Name] = []
    count_missing: list[Name] | None = None
    columns: dict[Name, ColumnRule] = {}

    def rule(self, name: str) -> ColumnRule:
        """Return the rule of a column."""
        return self.columns.get(name, ColumnRule())

    def is_optional(self, name: str) -> bool:
        """Return whether a column may be absent."""
        return any(fnmatchcase(name, pattern) for pattern in self.optional)


class TableRules(Roles, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table with a row per user or item.

    Attributes:
        file: Its name or pattern, or several of which the first that is there is taken.
        id: Its column of the user or item.
    """

    file: Name | list[Name]
    id: Name


class JoinRules(TableRules, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of something else that rows refer to; its features become theirs.

    Attributes:
        on: The column of the rows that names a row of the table.
    """

    on: Name


class Download(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a public log comes from: its name, what to download, and from which page."""

    name: Name
    what: Name
    page: Name


class Note(Struct, frozen=True, forbid_unknown_fields=True):
    """What a reader of the result has to know, if a column is there and another is not."""

    text: Name
    when: Name | None = None
    unless: Name | None = None


class Declaration(Roles, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A raw log.

    Attributes:
        kind: Its name.
        files: Names or patterns of its files, in the order in which rows are numbered.
        user: Who was shown something.
        item: What was shown.
        labels: What came of it, 0 or 1.
        time: When it was shown; a log without a clock is divided by user.
        request: What was shown together; a user's rows of an hour if left out.
        feedback: Columns that are known only after the showing, and so never features.
        history: Earlier items of the user.
        split: Whether train, valid and test are divided by 'time' or by 'user'.
        utc_offset: Hours from UTC to the clock of the users.
        users: Table of user features.
        items: Table of item features.
        joins: Other tables, whose features become those of the rows.
        folders: Where the files may be, below the folder that is named.
        instead: Files that are taken where none of `files` is there.
        one_file: Whether only one of the files may be read, since they overlap.
        one_version: What files of one version have in common: a pattern with a group.
        notes: What a reader of the result has to know.
        download: Where it comes from, if it is public.
    """

    kind: Annotated[str, Meta(pattern=r"^[\w.-]+$")]
    files: Annotated[list[Name], Meta(min_length=1)]
    user: Name
    item: Name
    labels: Annotated[list[Name], Meta(min_length=1)]
    time: Name | None = None
    request: Name | None = None
    feedback: list[Name] = []
    history: list[Name] = []
    split: Literal["time", "user"] | None = None
    utc_offset: Annotated[float, Meta(ge=-14, le=14)] = 0
    users: TableRules | None = None
    items: TableRules | None = None
    joins: dict[Name, JoinRules] = {}
    folders: list[Name] = msgspec.field(default_factory=lambda: ["."])
    instead: list[Name] = []
    one_file: bool = False
    one_version: str | None = None
    notes: list[Note] = []
    download: Download | None = None
