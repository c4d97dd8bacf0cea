"""Lanes: several numbers of an array at once, inside kernels."""

import numba
import numpy as np
import pytest

from harmonrank.lanes import DOUBLES, SINGLES, lanes, put_lanes


@numba.njit
def add_line(table, k, width, x, out, first):
    put_lanes(out, first, lanes(out, first) + (lanes(table, k) + x * lanes(table, k + width)))


@numba.njit
def multiply(table, i, j, out):
    put_lanes(out, 0, lanes(table, i) * lanes(table, j) + 1.0)


@pytest.mark.parametrize(("dtype", "width"), [(np.float32, SINGLES), (np.float64, DOUBLES)])
def test_lanes_are_neighbours_in_the_array_and_nothing_else_is_touched(dtype, width):
    rng = np.random.default_rng(0)
    table, out = rng.normal(size=(2, 64)).astype(dtype)
    expected, x, k, first = out.copy(), dtype(0.7), 5, 3
    line = table[k : k + width] + x * table[k + width : k + 2 * width]
    expected[first : first + width] += line
    add_line(table, k, width, x, out, first)
    np.testing.assert_allclose(out, expected, rtol=4 * np.finfo(dtype).eps)
    untouched = np.r_[0:first, first + width : 64]
    np.testing.assert_array_equal(out[untouched], expected[untouched])


@pytest.mark.parametrize(("dtype", "width"), [(np.float32, SINGLES), (np.float64, DOUBLES)])
def test_lanes_meet_lanes_one_by_one_and_a_number_meets_all(dtype, width):
    table, out = np.arange(32, dtype=dtype), np.zeros(width, dtype)
    multiply(table, 1, 9, out)
    np.testing.assert_array_equal(out, table[1 : 1 + width] * table[9 : 9 + width] + 1)


def test_arithmetic_is_in_the_type_of_the_array():
    table, out = np.full(16, 1.0, np.float32), np.zeros(8, np.float32)
    add_line(table, 0, 8, 2.0**-30, out, 0)
    np.testing.assert_array_equal(out, np.ones(8, np.float32))
