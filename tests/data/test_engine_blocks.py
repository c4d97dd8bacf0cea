"""Blocks on workers, here four shares in this process: the sums of blocks in one place."""

import numpy as np
import pytest

from harmonrank.data import blocks as room
from harmonrank.data.blocks import HeldBlocks
from harmonrank.data.engine_blocks import EngineBlocks
from harmonrank.engine import LocalEngine


class FourWorkers(LocalEngine):
    name = "four"
    workers = 4


def scaled(block, factor):
    return block * factor


def numbered(block, number, factor):
    return block * factor + number


def sums(block):
    return block.sum(), block.mean()


@pytest.fixture
def parts():
    return [np.random.default_rng(k).normal(size=50) for k in range(23)]


@pytest.mark.parametrize("most", [1, 3, 7, 1024])
def test_sums_are_those_of_one_process_to_the_last_bit(parts, most, monkeypatch):
    monkeypatch.setattr(room, "MOST_GROUPS", most)
    here = HeldBlocks(parts).made(scaled, 1.7)
    there = EngineBlocks(FourWorkers(), HeldBlocks(parts)).made(scaled, 1.7)
    assert len(there) == 23
    assert there.total(sums) == here.total(sums)
    for a, b in zip(here.each(scaled, 2.0), there.each(scaled, 2.0), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(there[17], here[17])


def test_a_group_is_one_sum_and_there_are_few_of_them(monkeypatch):
    monkeypatch.setattr(room, "MOST_GROUPS", 4)
    assert [room.group_size(n) for n in (1, 4, 5, 23)] == [1, 1, 2, 6]


def test_each_block_is_given_its_own_number(parts):
    blocks = EngineBlocks(FourWorkers(), HeldBlocks(parts))
    own = [10 * k for k in range(23)]
    made = blocks.made_with(numbered, own, 2.0)
    for k, (found, part) in enumerate(zip(made.each(scaled, 1.0), parts, strict=True)):
        np.testing.assert_array_equal(found, part * 2.0 + 10 * k)
