from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pytest
from msgspec import Meta

from harmonrank.support import DataError
from harmonrank.support.storage import Array, read_arrays, write_arrays
from harmonrank.support.storage.stored import declared, restored, stored


@dataclass(frozen=True)
class Curve:
    x: Annotated[np.ndarray, Array(("knots",), strictly=True)]
    y: Annotated[np.ndarray, Array(("knots",))]


@dataclass(frozen=True)
class Whole:
    kind: Literal["a", "b"]
    share: Annotated[float, Meta(gt=0, le=1)]
    table: Annotated[np.ndarray, Array(("M", 2))]
    counts: Annotated[np.ndarray, Array(("M",), "int64", low=0)] | None
    first: Curve
    curves: tuple[Curve, ...]
    named: Mapping[str, Curve]
    weights: Mapping[str, float]


def curve(seed):
    x = np.cumsum(np.random.default_rng(seed).random(4))
    return Curve(x, x**2)


@pytest.fixture
def whole():
    named = {"buy/x": curve(3), "like": curve(4)}
    counts = np.arange(3)
    parts = ("a", 0.5, np.ones((3, 2)), counts, curve(0), (curve(1), curve(2)), named, {"buy": 2.0})
    return Whole(*parts)


def same(a, b):
    assert stored(a)[0] == stored(b)[0]
    left, right = stored(a)[1], stored(b)[1]
    assert left.keys() == right.keys()
    for name, array in left.items():
        np.testing.assert_array_equal(array, right[name])


def test_what_was_stored_is_restored_from_a_file(whole, tmp_path):
    parts, arrays = stored(whole)
    write_arrays(tmp_path / "w.safetensors", arrays)
    result = read_arrays(tmp_path / "w.safetensors", declared(Whole, parts, {"M": 3, "knots": 4}))
    same(restored(Whole, parts, result), whole)


def test_a_value_that_is_not_there_has_no_array(whole):
    from dataclasses import replace

    parts, arrays = stored(replace(whole, counts=None, curves=(), named={}))
    assert parts["counts"] is None
    assert parts["curves"] == []
    assert not any(name.startswith(("counts", "curves", "named")) for name in arrays)
    same(restored(Whole, parts, arrays), replace(whole, counts=None, curves=(), named={}))


def test_sizes_are_those_that_are_given_or_the_same_within_a_dataclass(whole):
    parts, _ = stored(whole)
    arrays = declared(Whole, parts, {"M": 7})
    assert arrays["table"].shape == (7, 2)
    assert arrays["first/x"].shape == arrays["first/y"].shape == ("knots of first",)
    assert arrays["named/1/y"].shape == ("knots of named/1",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "c"}, "'kind': invalid enum value 'c'"),
        ({"share": 0}, "'share': expected float > 0"),
        ({"more": 1}, "'more' is not expected"),
        ({"curves": {}}, "'curves': expected array, got object"),
        ({"first": 3}, "'first': expected object, got int"),
        ({"named": [1]}, "'named': expected object, got array"),
    ],
)
def test_parts_of_other_types_are_refused(whole, change, message):
    parts, arrays = stored(whole)
    with pytest.raises(DataError, match=message):
        restored(Whole, parts | change, arrays)


def test_a_part_that_is_missing_is_named(whole):
    parts, arrays = stored(whole)
    del parts["first"]
    with pytest.raises(DataError, match="'first' is missing"):
        restored(Whole, parts, arrays)
