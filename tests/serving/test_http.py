"""Numbers read straight into an array are those of Python's own reader, to the last bit."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonrank.serving.http import _TENS, _read, numbers
from harmonrank.support import DataError

SPACES = st.sampled_from(["", " ", "\n", "\t ", " \r\n "])
NUMBERS = st.one_of(
    st.floats(-1e30, 1e30).map(repr),
    st.floats(0, 1).map(lambda x: f"{x:.6g}"),
    st.integers(-(10**25), 10**25).map(str),
    st.builds("{}e{}".format, st.integers(-(10**16), 10**16), st.integers(-330, 290)),
    st.sampled_from(["-0", "-0.0", "0E-400", "1.5E+3", "9007199254740993", "0.1e-22", "null"]),
)


def same(result, wanted):
    np.testing.assert_array_equal(result, np.array(wanted), strict=True)


@settings(deadline=None, max_examples=500)
@given(st.lists(NUMBERS, max_size=20), SPACES, SPACES)
def test_any_number_is_rounded_as_python_rounds_it(texts, before, after):
    raw = f"[{before}{f'{before},{after}'.join(texts)}{after}]".encode()
    same(numbers(raw, "x"), [np.nan if t == "null" else float(t) for t in texts])


def test_the_loop_itself_reads_short_numbers():
    values = np.random.default_rng(0).random(5000).round(6).tolist()
    raw = json.dumps([*values, 1e-22, 9e14, 12]).encode()
    result = np.empty(len(raw) // 2 + 1)
    assert _read(np.frombuffer(raw, np.uint8), result, _TENS) == 5003
    same(result[:5003], [*values, 1e-22, 9e14, 12.0])


@pytest.mark.parametrize("raw", [b"3", b"{}", b'["a"]', b"[[1]]", b"[true]", b'"]"', b"[1, {}]"])
def test_what_is_no_list_of_numbers_is_one_sentence(raw):
    with pytest.raises(DataError, match=r"^Scores: expected .*\.$"):
        numbers(raw, "Scores")
