"""A tree of sums: the same bits, wherever blocks are cut into shares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harmonrank.data.rows.sum_tree import PartSum, SumTree


def leaves(numbers, first=0):
    return [PartSum(first + k, first + k + 1, (x,)) for k, x in enumerate(numbers)]


def in_fours(numbers):
    """Add up four at a time until one is left; what is left over at the end comes last."""
    if len(numbers) <= 4:
        return left_to_right(numbers)
    size = 4
    while 4 * size < len(numbers):
        size *= 4
    whole = len(numbers) // size * size
    sums = left_to_right([in_fours(numbers[k : k + size]) for k in range(0, whole, size)])
    return sums + in_fours(numbers[whole:]) if whole < len(numbers) else sums


def left_to_right(numbers):
    result = numbers[0]
    for number in numbers[1:]:
        result = result + number
    return result


@pytest.mark.parametrize("count", [1, 2, 4, 5, 15, 16, 17, 39, 64, 65, 382])
def test_neighbours_are_added_up_in_fours(count):
    numbers = np.random.default_rng(count).normal(size=count).tolist()
    assert SumTree(leaves(numbers)).total() == (in_fours(numbers),)


@given(st.data(), st.integers(1, 200))
def test_shares_add_up_to_the_bits_of_all(data, count):
    numbers = np.random.default_rng(count).normal(size=(count, 3))
    cuts = data.draw(st.lists(st.integers(0, count), max_size=6).map(sorted))
    shares = [
        SumTree(leaves(numbers[a:b], a)).parts
        for a, b in zip([0, *cuts], [*cuts, count], strict=True)
    ]
    result = SumTree(part for share in shares for part in share).total()
    np.testing.assert_array_equal(result[0], SumTree(leaves(numbers)).total()[0])


def test_few_sums_are_left_of_many_blocks():
    for first, count in ((0, 1000), (333, 1000), (4095, 5000)):
        parts = SumTree(leaves([1] * count, first)).parts
        assert sum(part.values[0] for part in parts) == count
        assert len(parts) <= 6 * 7  # Three at either end of each level.


def test_what_comes_in_is_not_written_to_and_read_only_sums_can_be_added():
    arrays = np.random.default_rng(0).normal(size=(9, 4))
    arrays.flags.writeable = False
    result = SumTree(leaves(arrays)).total()[0]
    given_own = [PartSum(k, k + 1, (row,), own=True) for k, row in enumerate(arrays)]
    np.testing.assert_array_equal(SumTree(given_own).total()[0], result)


def test_nothing_adds_up_to_nothing():
    assert SumTree().total() == ()
