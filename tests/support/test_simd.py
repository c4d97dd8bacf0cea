"""SIMD: several numbers of an array at once, inside kernels."""

import numba
import numpy as np
import pytest

from harmonrank.support.simd import (
    DOUBLES,
    ROWS,
    SINGLES,
    double_simd,
    put_simd,
    row_simd,
    simd,
)
from harmonrank.support.simd_maths import (
    counted,
    exponential,
    fetched,
    folded,
    larger,
    of_all,
    sigmoid,
    smaller,
    transpose,
    widened,
)


@numba.njit
def add_line(table, k, width, x, out, first):
    put_simd(out, first, simd(out, first) + (simd(table, k) + x * simd(table, k + width)))


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


def test_arithmetic_is_in_the_type_of_the_array():
    table, out = np.full(16, 1.0, np.float32), np.zeros(8, np.float32)
    add_line(table, 0, 8, 2.0**-30, out, 0)
    np.testing.assert_array_equal(out, np.ones(8, np.float32))


@numba.njit
def apply_all(x, y, k, few, out, whole):
    a, b, places = row_simd(x, 0), row_simd(y, 0), row_simd(k, 0)
    put_simd(out, 0, exponential(a))
    put_simd(out, ROWS, sigmoid(b))
    put_simd(out, 2 * ROWS, larger(a, b))
    put_simd(out, 3 * ROWS, (a - b) / of_all(np.float32(3)))
    put_simd(out, 4 * ROWS, fetched(y, 1, places))
    put_simd(out, 5 * ROWS, smaller(a, b))
    put_simd(out, 6 * ROWS, folded(a))
    put_simd(whole, 0, counted(a, b) * 2)
    put_simd(whole, ROWS, widened(simd(few, 1)))


def test_every_function_of_lanes_is_that_of_numpy_in_each_lane():
    rng = np.random.default_rng(0)
    x = -np.geomspace(1e-6, 86, ROWS).astype(np.float32)
    y = (20 * rng.normal(size=2 * ROWS)).astype(np.float32)
    k, few = rng.permutation(ROWS).astype(np.int32), np.arange(65_520, 65_530).astype(np.uint16)
    out, whole = np.zeros((7, ROWS), np.float32), np.zeros(ROWS + SINGLES, np.int32)
    apply_all(x, y, k, few, out.reshape(-1), whole)
    a, b = x.astype(float), y[:ROWS].astype(float)
    np.testing.assert_allclose(out[0], np.exp(a), rtol=2e-7)
    np.testing.assert_allclose(out[1], 1 / (1 + np.exp(-b)), rtol=3e-7)
    np.testing.assert_array_equal(out[2], np.maximum(a, b))
    np.testing.assert_array_equal(out[3], (x - y[:ROWS]) / np.float32(3))
    np.testing.assert_array_equal(out[4], y[1 + k])
    np.testing.assert_array_equal(out[5], np.minimum(a, b))
    np.testing.assert_array_equal(out[6, : ROWS // 2], x[::2] + x[1::2])
    np.testing.assert_array_equal(whole[:ROWS], 2 * (a <= b))
    np.testing.assert_array_equal(whole[ROWS:], few[1:9])


def test_the_exponential_of_what_is_too_small_is_next_to_nothing():
    x, out = np.full(ROWS, -np.inf, np.float32), np.ones(7 * ROWS, np.float32)
    apply_all(x, -x, np.zeros(ROWS, np.int32), np.zeros(9, np.uint16), out, np.zeros(32, np.int32))
    assert (out[:ROWS] < 1e-37).all()
    np.testing.assert_array_equal(out[ROWS : 2 * ROWS], 1)


@numba.njit
def turn_and_widen(table, first, step, out, to, stride, doubles):
    transpose(table, first, step, out, to, stride)
    put_simd(doubles, 1, double_simd(doubles, 1) + widened(simd(table, 0)))


def test_rows_become_columns_and_doubles_take_singles():
    table, out = np.arange(200, dtype=np.float32), np.zeros(200, np.float32)
    doubles = np.full(10, 0.1)
    turn_and_widen(table, 3, 11, out, 5, 9, doubles)
    rows = table[3 : 3 + 8 * 11].reshape(8, 11)[:, :8]
    np.testing.assert_array_equal(out[5 : 5 + 8 * 9].reshape(8, 9)[:, :8], rows.T)
    np.testing.assert_array_equal(doubles, np.r_[0.1, 0.1 + np.arange(8), 0.1])
