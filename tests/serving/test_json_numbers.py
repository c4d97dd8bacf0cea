"""Numbers read straight into an array are those of the JSON library, to the last bit."""

import json
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonrank.serving.json_numbers import _HIGH, _LOW, _TENS, _read, numbers
from harmonrank.support.errors import DataError

SPACES = st.sampled_from(["", " ", "\n", "\t ", " \r\n "])


def plainly(texts):
    """Read numbers with Python's own `float`, one by one."""
    return np.array([float(text) for text in texts], np.float64)


def read_here(texts):
    """Return what the loop reads, and whether it left the list to the JSON library."""
    raw = ("[" + ",".join(texts) + "]").encode()
    found = np.empty(len(raw) // 2 + 1)
    count = _read(np.frombuffer(raw, np.uint8), found, _HIGH, _LOW, _TENS)
    return found[: max(count, 0)], count < 0


def same(found, wanted):
    assert found.view(np.uint64).tolist() == wanted.view(np.uint64).tolist()


@settings(deadline=None)
@given(st.lists(st.floats(-1e30, 1e30), max_size=20), SPACES, SPACES)
def test_floats_of_any_size_come_back_as_they_were(values, before, after):
    raw = f"[{before}{f'{before},{after}'.join(map(repr, values))}{after}]".encode()
    same(numbers(raw, "x"), np.array(values))


@settings(deadline=None)
@given(
    st.integers(0, 10**25),
    st.one_of(st.none(), st.integers(0, 10**22)),
    st.one_of(st.none(), st.tuples(st.sampled_from(["e", "E", "e-", "e+"]), st.integers(0, 330))),
)
def test_any_digits_are_rounded_as_python_rounds_them(whole, fraction, power):
    text = str(whole) + ("" if fraction is None else f".{fraction:022d}")
    text += "" if power is None else f"{power[0]}{power[1]}"
    if np.isfinite(float(text)):
        same(numbers(f"[{text}]".encode(), "x"), plainly([text]))


@pytest.mark.parametrize("kind", ["doubles", "singles", "tiny", "digits", "powers", "whole"])
def test_the_loop_itself_rounds_to_the_nearest_double(kind):
    rng = np.random.default_rng(0)
    texts = {
        "doubles": lambda: map(repr, rng.random(5000).tolist()),
        "singles": lambda: map(repr, rng.random(5000).astype(np.float32).astype(float).tolist()),
        "tiny": lambda: map(repr, (10 ** rng.uniform(-40, 0, 5000)).tolist()),
        "digits": lambda: (f"0.{n:019d}" for n in rng.integers(0, 2**63, 5000)),
        "powers": lambda: (f"{n}e{n % 54 - 58}" for n in rng.integers(1, 10**18, 5000)),
        "whole": lambda: map(str, rng.integers(0, 2**53, 5000)),
    }[kind]()
    texts = list(texts)
    found, left = read_here(texts)
    assert not left
    same(found, plainly(texts))


def test_what_lies_close_to_half_way_between_two_doubles_is_rounded_right():
    rng, read = np.random.default_rng(1), 0
    for value in rng.random(500).tolist():
        half = (Decimal(value) + Decimal(float(np.nextafter(value, 1)))) / 2
        for text in (format(half, ".17f"), format(half, ".18f"), format(half, "f")):
            found, left = read_here([text])
            read += not left
            same(found if not left else numbers(f"[{text}]".encode(), "x"), plainly([text]))
    assert read > 500
    odd = [str(2**53 + 2 * n + 1) for n in range(50)]
    same(numbers(("[" + ",".join(odd) + "]").encode(), "x"), plainly(odd))


@pytest.mark.parametrize(
    "text",
    ["[]", "[ ]", "[0e-50]", "[0.00000000000000000000000000000000]", "[1e-400]", "[5e-324]",
     "[-0.5]", "[-0.0]", "[99999999999999999999]", "[18446744073709551615]", "[-7e-30]",
     "[1.00000000000000000000000000000]", "[1e30,2E+3 ,3e-05]", "[0e99999]", "[null,1, null ]"],
)  # fmt: skip
def test_edges_are_those_of_the_json_library(text):
    same(numbers(text.encode(), "x"), np.array(json.loads(text), np.float64))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('["a"]', "Score: expected float | null, got str at [0]."),
        ("[0.1, [0.2]]", "Score: expected float | null, got array at [1]."),
        ("[true]", "Score: expected float | null, got bool at [0]."),
        ("3", "Score: expected array, got int."),
        ('{"a": [1]}', "Score: expected array, got object."),
        ("[1e999]", "Score: number out of range at [0]."),
        ('"]"', "Score: expected array, got str."),
    ],
)
def test_whatever_else_there_is_gets_the_sentence_of_the_json_library(text, sentence):
    with pytest.raises(DataError) as found:
        numbers(text.encode(), "Score")
    assert str(found.value) == sentence


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_bytes_that_are_no_json_are_refused_or_read_without_harm(raw):
    with suppress(DataError):
        numbers(b"[" + raw + b"]", "x")
