"""Declaration: which files a raw log has, which column is what, and how values are read."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from harmonrank.support import DataError, did_you_mean
from harmonrank.support.options import checked_path
from harmonrank.support.storage import read_toml

Name = Annotated[str, Meta(min_length=1)]
Kind = Literal["uint8", "int16", "int32", "int64", "float32", "float64", "text"]
Transform = Literal[
    "id", "ms", "s", "iso", "text", "code", "not_negative", "hour", "weekday", "hourmin",
    "number", "positive", "day", "label", "not", "user_hour",
]  # fmt: skip

_IDS, _NUMBERS = ("id", "code"), ("number", "positive", "day")
_ALLOWED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("user", "item", "id", "history"), _IDS),
    "request": (*_IDS, "user_hour"),
    "time": ("ms", "s", "iso"),
    "labels": ("label", "not"),
    "categorical": ("text", "code", "not_negative", "hour", "weekday", "hourmin"),
    "numeric": _NUMBERS,
    "feedback": (*_NUMBERS, "label", "not"),
    "multi": (),
}
"""The transforms that suit a role."""

_FEATURES = ("categorical", "numeric", "multi")


class ColumnRule(Struct, frozen=True, forbid_unknown_fields=True, rename={"source": "from"}):
    """How a column is made of one in the file.

    Attributes:
        source: Its name in the file, or several of which the first that is there is taken; the
            column's own name if left out.
        transform: What is done to it; see `harmonrank_lab.upstream.logs._rules`.
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

    def names(self, name: str) -> list[str]:
        """Return the names that a column may have in the file, the first that is there counting."""
        return [self.source] if isinstance(self.source, str) else self.source or [name]


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

    @property
    def files(self) -> list[str]:
        """The names or patterns of its file, the first that is there counting."""
        return [self.file] if isinstance(self.file, str) else self.file


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


def read_declaration(path: str | Path) -> Declaration:
    """Read a TOML file that declares a raw log.

    Raises:
        DataError: The file, a key or a value is wrong; the sentence says which.
    """
    path = checked_path("declaration", path)
    try:
        parts = read_toml(path, "a TOML declaration")
    except FileNotFoundError:
        raise DataError(f"There is no declaration '{path}'; check its name.") from None
    _check_keys(path, parts, Declaration, "")
    try:
        declared = msgspec.convert(parts, Declaration)
    except msgspec.ValidationError as error:
        raise DataError(f"Declaration '{path}': {_said(str(error))}.") from None
    for problem in _problems_of(declared):
        raise DataError(f"Declaration '{path}': {problem}")
    return declared


_Kinds = dict[str, type[Struct]]
_PARTS: _Kinds = {"users": TableRules, "items": TableRules, "download": Download}
_PARTS["otherwise"] = ColumnRule
_NAMED: _Kinds = {"joins": JoinRules, "columns": ColumnRule}
"""Keys of which each part has a name and its own keys."""


def _check_keys(path: Path, parts: Any, kind: type[Struct], place: str) -> None:
    """Refuse an unknown key with the one that is like it, wherever it is."""
    if not isinstance(parts, Mapping):
        return
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    for key, part in parts.items():
        if key not in known:
            where = f" in [{place}]" if place else ""
            raise DataError(
                f"Declaration '{path}' has an unknown key '{key}'{where}. "
                f"{did_you_mean(key, sorted(known))}"
            )
        inner = f"{place}.{key}" if place else key
        if key in _PARTS:
            _check_keys(path, part, _PARTS[key], inner)
        elif key in _NAMED and isinstance(part, Mapping):
            for name, rules in part.items():
                _check_keys(path, rules, _NAMED[key], f"{inner}.{name}")
                if key == "columns":
                    _check_rule(path, rules, f"{inner}.{name}")


def _check_rule(path: Path, rule: Any, place: str) -> None:
    """Refuse a rule that is none; the decoder of the whole would not say of which column."""
    given = rule if isinstance(rule, Mapping) else {}
    for key, known in (("transform", get_args(Transform)), ("type", get_args(Kind))):
        if given.get(key) is not None and given[key] not in known:
            hint = did_you_mean(str(given[key]), known)
            raise DataError(f"Declaration '{path}': `{place}.{key}` is '{given[key]}'. {hint}")
    try:
        msgspec.convert(rule, ColumnRule)
    except msgspec.ValidationError as error:
        raise DataError(f"Declaration '{path}': {_said(str(error), f'{place}.')}.") from None


def _said(error: str, before: str = "") -> str:
    """Return what the decoder says, with the place first: `$.columns.price.keep` names a key."""
    what, _, place = error.partition(" - at `$")
    key = (before + place.rstrip("`").lstrip(".")).rstrip(".")
    return f"`{key}`: {what[:1].lower()}{what[1:]}" if key else what[:1].lower() + what[1:]


def _problems_of(declared: Declaration) -> Iterator[str]:
    """Yield what is wrong, a sentence each."""
    d = declared
    rows = {"user": [d.user], "item": [d.item], "time": [d.time] if d.time else []}
    rows |= {r: getattr(d, r) for r in ("labels", "feedback", "history", *_FEATURES)}
    for join in d.joins.values():
        # Their features stand among those of the rows.
        rows |= {f"{join.on} {r}": getattr(join, r) for r in _FEATURES}
    if d.request is None and any("request" in part for part in rows.values()):
        yield "'request' names what was shown together; declare it as `request`, or rename it."
    asked = {"request": [d.request] if d.request and d.request != d.user else []}
    yield from _role_problems("", d, rows, asked)
    if d.split == "time" and d.time is None:
        yield 'split = "time" needs `time`, the column of when a row was shown.'
    clocked = ("hour", "weekday", "hourmin", "user_hour")
    needs = [n for n, rule in d.columns.items() if rule.transform in clocked]
    if needs and d.time is None:
        yield f"`columns.{needs[0]}` needs `time`, the column of when a row was shown."
    joins = ((f"joins.{name}", join) for name, join in d.joins.items())
    for place, table in (("users", d.users), ("items", d.items), *joins):
        if table is not None:
            parts = {"id": [table.id]} | {r: getattr(table, r) for r in _FEATURES}
            yield from _role_problems(f"{place}.", table, parts, {})
    yield from _pattern_problems(d)


def _pattern_problems(d: Declaration) -> Iterator[str]:
    """Yield patterns of files that lead out of the folder, or are none."""
    tables = [table for table in (d.users, d.items, *d.joins.values()) if table is not None]
    patterns = [*d.files, *d.instead, *d.folders, *(file for t in tables for file in t.files)]
    for pattern in patterns:
        if PurePath(pattern).is_absolute() or ".." in PurePath(pattern).parts:
            yield f"'{pattern}' must be within the folder of the log; name files from there."
    try:
        groups = 1 if d.one_version is None else re.compile(d.one_version).groups
    except re.error as error:
        yield f"`one_version` is no pattern: {error}."
    else:
        if groups < 1:
            yield "`one_version` must have a group, as in '_(a|b)$'."


def _role_problems(
    place: str, roles: Roles, named: Mapping[str, Sequence[str]], asked: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    names = [name for part in named.values() for name in part]
    for name in names:
        if names.count(name) > 1:
            yield f"column '{name}' is named twice; each has one role."
        if name == "row":
            yield "no column may be called 'row', which numbers the rows; give it another name."
    for name in roles.codes:
        if name not in roles.categorical:
            hint = did_you_mean(name, roles.categorical)
            yield f"`{place}codes` must name categorical columns. Got '{name}'. {hint}"
    parts = {role: part for role, part in {**named, **asked}.items() if role in _ALLOWED}
    role_of = {name: role for role, part in parts.items() for name in part}
    for name, rule in roles.columns.items():
        if name not in role_of:
            hint = did_you_mean(name, role_of)
            yield f"`{place}columns` has a rule for '{name}', which no role names. {hint}"
        else:
            yield from _rule_problems(f"{place}columns.{name}", rule, role_of[name], place)


def _rule_problems(key: str, rule: ColumnRule, role: str, place: str) -> Iterator[str]:
    allowed = [t for t in _ALLOWED[role] if not place or t not in ("hour", "weekday", "hourmin")]
    if rule.transform is not None and rule.transform not in allowed:
        known = f"one of {', '.join(allowed)}" if allowed else "none"
        yield f"`{key}.transform` of this role must be {known}. Got '{rule.transform}'."
    if rule.otherwise is not None:
        yield from _rule_problems(f"{key}.otherwise", rule.otherwise, role, place)
