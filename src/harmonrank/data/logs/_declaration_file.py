"""A declaration as a TOML file."""

__all__ = ["read_declaration"]

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Struct

from harmonrank.data.decoding import read_toml
from harmonrank.data.logs._declaration import (
    ColumnRule,
    Declaration,
    Download,
    JoinRules,
    Kind,
    TableRules,
    Transform,
)
from harmonrank.data.logs._problems import problems_of
from harmonrank.errors import DataError, did_you_mean
from harmonrank.options import checked_path


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
    for problem in problems_of(declared):
        raise DataError(f"Declaration '{path}': {problem}")
    return declared


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
        if key in ("users", "items"):
            _check_keys(path, part, TableRules, inner)
        elif key == "download":
            _check_keys(path, part, Download, inner)
        elif key == "otherwise":
            _check_keys(path, part, ColumnRule, inner)
        elif key == "joins" and isinstance(part, Mapping):
            for name, rules in part.items():
                _check_keys(path, rules, JoinRules, f"{inner}.{name}")
        elif key == "columns" and isinstance(part, Mapping):
            for name, rule in part.items():
                _check_keys(path, rule, ColumnRule, f"{inner}.{name}")
                _check_rule(path, rule, f"{inner}.{name}")


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
