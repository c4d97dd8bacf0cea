"""Stored: a frozen dataclass as JSON parts and arrays, and back, by its annotated fields.

A field is one of

    Annotated[np.ndarray, Array(("M", "slots"))]   an array, checked against its declaration
    Annotated[Mapping[str, np.ndarray], Array(())] named arrays, whose shapes are parts
    another dataclass                              its own parts and arrays, below its name
    X | None, tuple[X, ...], Mapping[str, X]       none, several or named ones of these
    a class with `to_dict` and `from_dict`         what these give and take
    anything else                                  JSON of its type, with bounds (`msgspec.Meta`)

So a new field is stored, declared and checked by its annotation. Reading executes nothing.
"""

__all__ = ["declared", "restored", "stored"]

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from harmonrank.support.errors import DataError
from harmonrank.support.storage.arrays import Array
from harmonrank.support.storage.decoding import decode

T = TypeVar("T")
Arrays = dict[str, np.ndarray]
Declared = dict[str, Array]
Plan = Callable[[Mapping[str, np.ndarray]], Any]
_Size = Annotated[int, msgspec.Meta(ge=0)]


def stored(value: Any, at: str = "") -> tuple[dict[str, Any], Arrays]:
    """Return the JSON parts and the arrays of a dataclass.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Line:
    ...     name: str
    ...     slope: Annotated[np.ndarray, Array(("M",))]
    >>> stored(Line("a", np.ones(2)))
    ({'name': 'a'}, {'slope': array([1., 1.])})

    Args:
        value: The dataclass.
        at: Begins the names of its arrays.
    """
    arrays: Arrays = {}
    hint: Any = type(value)
    return _kind_of(hint).put(value, at, arrays), arrays


def declared(
    kind: Any, parts: Any, sizes: Mapping[str, int] | None = None, at: str = ""
) -> Declared:
    """Return what each array of a stored dataclass must be.

    Args:
        kind: The dataclass.
        parts: Its JSON parts, which decide what arrays there are.
        sizes: The named sizes; a missing name stands for any size, the same one in all arrays of
            one dataclass.
        at: As for `stored`.
    """
    arrays: Declared = {}
    _kind_of(kind).plan(parts, at, arrays)
    return {name: _sized(name, array, sizes or {}) for name, array in arrays.items()}


def restored(kind: type[T], parts: Any, arrays: Mapping[str, np.ndarray], at: str = "") -> T:
    """Return the dataclass whose parts and arrays these are.

    Raises:
        DataError: The parts are not those of its fields.
    """
    hint: Any = kind
    value: T = _kind_of(hint).plan(parts, at, {})(arrays)
    return value


def _sized(name: str, array: Array, sizes: Mapping[str, int]) -> Array:
    place = name.rpartition("/")[0]

    def known(size: int | str) -> int | str:
        return sizes.get(size, f"{size} of {place}") if isinstance(size, str) else size

    return dataclasses.replace(array, shape=tuple(map(known, array.shape)))


class _Kind(Protocol):
    """How values of one type are stored below a place, which is '' or ends with a slash."""

    def put(self, value: Any, at: str, arrays: Arrays) -> Any:
        """Add the arrays of a value; return its parts."""

    def plan(self, parts: Any, at: str, declared: Declared) -> Plan:
        """Add what its arrays must be; return what makes the value of them."""


@cache
def _kind_of(hint: Any) -> _Kind:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        array = next((meta for meta in hint.__metadata__ if isinstance(meta, Array)), None)
        if array is None:
            return _Plain(hint)
        return _NamedArrays(array) if get_origin(inner[0]) is Mapping else _OneArray(array)
    if isinstance(hint, type) and hasattr(hint, "to_dict") and hasattr(hint, "from_dict"):
        return _Custom(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _Fields(hint)
    kinds = [_kind_of(part) for part in inner if part not in (NoneType, Ellipsis)]
    if all(isinstance(kind, _Plain) for kind in kinds):
        return _Plain(hint)
    if origin in (Union, UnionType) and len(inner) == 2 and NoneType in inner:
        return _Optional(kinds[0])
    if origin is tuple and inner[-1] is Ellipsis:
        return _Several(kinds[0])
    if origin is Mapping and inner[0] is str:
        return _Named(kinds[1])
    raise TypeError(f"no way to store {hint}")


@dataclasses.dataclass(frozen=True)
class _Plain:
    """JSON."""

    hint: Any

    def put(self, value: Any, at: str, arrays: Arrays) -> Any:  # noqa: ARG002
        return msgspec.to_builtins(value)

    def plan(self, parts: Any, at: str, declared: Declared) -> Plan:  # noqa: ARG002
        value = _decoded(parts, self.hint, at)
        return lambda _: value


@dataclasses.dataclass(frozen=True)
class _Custom:
    """A class with its own `to_dict` and `from_dict`."""

    hint: Any

    def put(self, value: Any, at: str, arrays: Arrays) -> Any:  # noqa: ARG002
        return value.to_dict()

    def plan(self, parts: Any, at: str, declared: Declared) -> Plan:  # noqa: ARG002
        return lambda _: self.hint.from_dict(parts)


@dataclasses.dataclass(frozen=True)
class _OneArray:
    """An array, which has no part where it cannot be absent."""

    array: Array

    def put(self, value: Any, at: str, arrays: Arrays) -> Any:
        arrays[at.rstrip("/")] = np.asarray(value)
        return True

    def plan(self, parts: Any, at: str, declared: Declared) -> Plan:  # noqa: ARG002
        declared[at.rstrip("/")] = self.array
        return lambda arrays: arrays[at.rstrip("/")]


@dataclasses.dataclass(frozen=True)
class _NamedArrays:
    """Arrays under their own names; whoever restores them compares their shapes."""

    array: Array

    def put(self, value: Any, at: str, arrays: Arrays) -> Any:
        arrays.update({f"{at}{name}": np.asarray(item) for name, item in value.items()})
        return {name: list(item.shape) for name, item in value.items()}

    def plan(self, parts: Any, at: str, declared: Declared) -> Plan:
        for name, shape in _decoded(parts, dict[str, tuple[_Size, ...]], at).items():
            declared[f"{at}{name}"] = dataclasses.replace(self.array, shape=shape)
        return lambda arrays: {name: arrays[f"{at}{name}"] for name in parts}


@dataclasses.dataclass(frozen=True)
class _Fields:
    """A dataclass."""

    hint: type

    def put(self, value: Any, at: str, arrays: Arrays) -> Any:
        kinds = _kinds_of_fields(self.hint)
        parts = {n: k.put(getattr(value, n), f"{at}{n}/", arrays) for n, k in kinds.items()}
        return {n: part for n, part in parts.items() if not isinstance(kinds[n], _OneArray)}

    def plan(self, parts: Any, at: str, declared: Declared) -> Plan:
        known, kinds = _decoded(parts, dict[str, Any], at), _kinds_of_fields(self.hint)
        named = {name for name, kind in kinds.items() if not isinstance(kind, _OneArray)}
        for name in sorted(known.keys() ^ named):
            raise DataError(f"'{at}{name}' is {'missing' if name in named else 'not expected'}")
        plans = {n: k.plan(known.get(n, True), f"{at}{n}/", declared) for n, k in kinds.items()}
        return lambda arrays: self.hint(**{name: plan(arrays) for name, plan in plans.items()})


@cache
def _kinds_of_fields(hint: type) -> dict[str, _Kind]:
    hints = get_type_hints(hint, include_extras=True)
    fields = [field.name for field in dataclasses.fields(hint) if field.init]
    return {name: _kind_of(hints[name]) for name in fields}


@dataclasses.dataclass(frozen=True)
class _Optional:
    """A value or none."""

    kind: _Kind

    def put(self, value: Any, at: str, arrays: Arrays) -> Any:
        return None if value is None else self.kind.put(value, at, arrays)

    def plan(self, parts: Any, at: str, declared: Declared) -> Plan:
        return (lambda _: None) if parts is None else self.kind.plan(parts, at, declared)


@dataclasses.dataclass(frozen=True)
class _Several:
    """A tuple."""

    kind: _Kind

    def put(self, value: Any, at: str, arrays: Arrays) -> Any:
        return [self.kind.put(item, f"{at}{k}/", arrays) for k, item in enumerate(value)]

    def plan(self, parts: Any, at: str, declared: Declared) -> Plan:
        listed = enumerate(_decoded(parts, list[Any], at))
        plans = [self.kind.plan(part, f"{at}{k}/", declared) for k, part in listed]
        return lambda arrays: tuple(plan(arrays) for plan in plans)


@dataclasses.dataclass(frozen=True)
class _Named:
    """A mapping; its arrays are numbered, as names may hold anything."""

    kind: _Kind

    def put(self, value: Any, at: str, arrays: Arrays) -> Any:
        return dict(zip(value, _Several(self.kind).put(value.values(), at, arrays), strict=True))

    def plan(self, parts: Any, at: str, declared: Declared) -> Plan:
        named = _decoded(parts, dict[str, Any], at)
        values = _Several(self.kind).plan([*named.values()], at, declared)
        return lambda arrays: dict(zip(named, values(arrays), strict=True))


def _decoded(parts: Any, kind: Any, at: str) -> Any:
    return decode(parts, kind, f"'{at.rstrip('/')}'")
