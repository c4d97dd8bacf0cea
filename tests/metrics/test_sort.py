import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from harmonrank.metrics import argsort
from harmonrank.support import UsageError

rng = np.random.default_rng(0)
COLUMNS = {
    "bell": rng.normal(size=5_000),
    "few values": rng.integers(0, 7, 5_000) / 7,
    "constant": np.full(5_000, 0.25),
    "long tails": np.exp(12 * rng.normal(size=5_000)),
    "two clumps": np.r_[rng.normal(size=2_500), 1e9 + rng.normal(size=2_500)],
    "sorted": np.arange(5_000.0),
    "backwards": np.arange(5_000.0)[::-1],
    "infinities": np.r_[rng.normal(size=2_000), np.full(50, np.inf), np.full(50, -np.inf)],
    "widest": np.r_[rng.normal(size=2_000), -1.5e38, 1.5e38],
    "tiniest": np.r_[rng.normal(size=2_000) * 1e-40],
    "both zeros": np.tile([0.0, -0.0, 1.0, -1.0, -0.0, 0.0], 500),
    "one": np.ones(1),
    "none": np.ones(0),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", COLUMNS)
def test_argsort_is_the_stable_sort(name, dtype):
    values = COLUMNS[name].astype(dtype)
    np.testing.assert_array_equal(argsort(values), np.argsort(values, kind="stable"))


@given(
    st.sampled_from([np.float32, np.float64]).flatmap(
        lambda dtype: arrays(dtype, st.integers(0, 90), elements={"allow_nan": False})
    )
)
def test_argsort_is_the_stable_sort_of_any_floats(values):
    np.testing.assert_array_equal(argsort(values), np.argsort(values, kind="stable"))


def test_argsort_of_more_than_a_cache_full():
    values = rng.normal(size=300_000).astype(np.float32).round(4)
    np.testing.assert_array_equal(argsort(values), np.argsort(values, kind="stable"))


def test_argsort_reads_strided_and_leaves_its_input_alone():
    values = rng.normal(size=(200, 3))
    values.setflags(write=False)
    column = values[:, 1]
    np.testing.assert_array_equal(argsort(column), np.argsort(column, kind="stable"))


def test_argsort_sorts_every_row():
    values = rng.normal(size=(5, 400)).round(2)
    np.testing.assert_array_equal(argsort(values), np.argsort(values, axis=1, kind="stable"))


@pytest.mark.parametrize("values", [np.ones((2, 2, 2)), np.ones(3, int), np.ones(3, np.float16)])
def test_argsort_refuses_what_it_cannot_sort(values):
    with pytest.raises(UsageError, match="a vector or rows of them, and float32 or float64"):
        argsort(values)
