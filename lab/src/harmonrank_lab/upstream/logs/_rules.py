"""Rules: what becomes of the columns that a file has, by its declaration."""

__all__ = ["Made", "cleaned", "counted", "resolved"]

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import msgspec
import polars as pl

from harmonrank.support.errors import DataError, shown
from harmonrank_lab.upstream.logs._declaration import ColumnRule, Roles
from harmonrank_lab.upstream.logs._transforms import RowClock, oddity, transformed

_FROM_CLOCK = ("hour", "weekday")
_DEFAULTS = {"user": "id", "item": "id", "request": "id", "id": "id", "numeric": "number"}
_DEFAULTS |= {"labels": "label", "feedback": "number", "history": "id"}


@dataclass(frozen=True)
class Made:
    """A column to be written.

    Attributes:
        name: What it will be called.
        role: What it is for, by the declaration's word.
        rule: How it is made.
        source: The column of the file that it is made of; empty if it is made of the time.
        place: Of a column with many values: which of them, from 0 on.
    """

    name: str
    role: str
    rule: ColumnRule
    source: str
    place: int = 0

    def expression(self, clock: RowClock | None) -> pl.Expr:
        """Return how it is made."""
        if self.role == "time":
            assert clock is not None
            return clock.ms().cast(pl.Int64, strict=False).alias(self.name)
        if self.role == "multi":
            values = pl.col(self.source).str.split(self.rule.separator)
            value = values.list.get(self.place, null_on_oob=True).str.strip_chars()
            value = pl.when(value != "").then(value)
            kind = pl.Int64 if self.rule.whole else pl.String
            return value.cast(kind, strict=False).alias(self.name)
        made = transformed(self.name, self.rule, self.source, clock)
        # Number 0 stands for no item where a list of earlier ones is filled up.
        return pl.when(made > 0).then(made).alias(self.name) if self.role == "history" else made


def resolved(roles: Roles, role: str, name: str, there: Collection[str]) -> list[Made]:
    """Return the columns that a declared one becomes: none if it may be absent and is.

    Raises:
        KeyError: It is absent and may not be.
    """
    rule = roles.rule(name)
    while True:
        names = [rule.source] if isinstance(rule.source, str) else rule.source or [name]
        source = next((n for n in names if n in there), None)
        if rule.transform in _FROM_CLOCK:
            source = ""
        if source is not None:
            break
        if rule.otherwise is None:
            if roles.is_optional(name):
                return []
            raise KeyError(names[0])
        rule = rule.otherwise
    rule = _completed(rule, role, is_code=name in roles.codes)
    if role != "multi":
        return [Made(name, role, rule, source)]
    first = Made(name, role, rule, source)
    others = (replace(first, name=f"{name}_{k + 1}", place=k) for k in range(1, rule.keep))
    return [first, *others]


def _completed(rule: ColumnRule, role: str, *, is_code: bool) -> ColumnRule:
    """Return a rule with the transform of its role, where it names none."""
    if rule.transform is not None or role in ("time", "multi"):
        return rule
    if role == "categorical":
        return msgspec.structs.replace(rule, transform="code") if is_code else rule
    if rule.at_least is not None or rule.whole:
        return rule
    return msgspec.structs.replace(rule, transform=_DEFAULTS.get(role))


def cleaned(frame: pl.DataFrame, made: Sequence[Made], clock: RowClock | None) -> pl.DataFrame:
    """Return the columns to be written."""
    try:
        found = frame.select(m.expression(clock) for m in made)
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise DataError(
            f"The declared columns cannot be made: {reason}; check `format`, `missing` and `type`."
        ) from None
    for m in made:
        if m.role == "labels" and m.source:
            _check_words(frame[m.source], found[m.name], m)
        if m.role == "user" and not m.rule.whole and (lost := found[m.name].null_count()):
            raise DataError(
                f"User column '{m.source}' has {lost:,} missing values; drop those rows."
            )
    return found


def _check_words(raw: pl.Series, label: pl.Series, made: Made) -> None:
    lost = raw.is_not_null() & label.is_null()
    if lost.any():
        raise DataError(
            f"Label column '{made.source}' must be 0 or 1, or true or false. "
            f"Got {shown(raw.filter(lost)[0])}; repair or drop such rows, or declare `at_least`."
        )


def counted(
    frame: pl.DataFrame, made: Sequence[Made], roles: Roles, clock: RowClock | None
) -> dict[str, int]:
    """Return how often each oddity was met."""
    found: dict[str, int] = {}
    for m in sorted(made, key=lambda m: m.source):
        text, where = oddity(m.name, m.rule, m.source, clock) if m.source else ("", pl.lit(0))
        if text:
            found[text] = int(frame.select(where.sum()).item())
    missing = {c: frame[c].null_count() for c in frame.columns}
    return found | _missing(missing, roles.count_missing)


def _missing(missing: Mapping[str, int], wanted: Sequence[str] | None) -> dict[str, int]:
    patterns = list(missing) if wanted is None else wanted
    sums = {p: sum(n for c, n in missing.items() if fnmatchcase(c, p)) for p in patterns}
    return {f"{p.rstrip('*')} missing: null": n for p, n in sums.items() if n}
