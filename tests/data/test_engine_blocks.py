"""Blocks on workers, here shares in this process: the sums of blocks in one place."""

import numpy as np
import pytest

from harmonrank.data.rows import engine_blocks
from harmonrank.data.rows.blocks import HeldBlocks
from harmonrank.data.rows.engine_blocks import EngineBlocks
from harmonrank.engine import LocalEngine


class Workers(LocalEngine):
    name = "many"

    def __init__(self, workers):
        self.workers = workers


def scaled(block, factor):
    return block * factor


def numbered(block, number, factor):
    return block * factor + number


def sums(block):
    return block.sum(), block.mean()


def itself(block):
    return block, 1


@pytest.fixture
def parts():
    return [np.random.default_rng(k).normal(size=50) for k in range(23)]


@pytest.mark.parametrize("senders", [2, 32])
@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7, 23, 30])
def test_sums_are_those_of_one_process_to_the_last_bit(parts, workers, senders, monkeypatch):
    monkeypatch.setattr(engine_blocks, "SENDERS", senders)
    here = HeldBlocks(parts).made(scaled, 1.7)
    there = EngineBlocks(Workers(workers), HeldBlocks(parts)).made(scaled, 1.7)
    assert len(there) == 23
    assert there.total(sums) == here.total(sums)
    for a, b in zip(here.each(scaled, 2.0), there.each(scaled, 2.0), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(there[17], here[17])


def test_what_is_summed_is_not_written_to(parts):
    before = [part.copy() for part in parts]
    first, _ = EngineBlocks(Workers(3), HeldBlocks(parts)).total(itself)
    again, _ = HeldBlocks(parts).total(itself)
    np.testing.assert_array_equal(first, again)
    for part, old in zip(parts, before, strict=True):
        np.testing.assert_array_equal(part, old)


def test_each_block_is_given_its_own_number(parts):
    blocks = EngineBlocks(Workers(4), HeldBlocks(parts))
    own = [10 * k for k in range(23)]
    made = blocks.made(numbered, 2.0, own=own)
    for k, (result, part) in enumerate(zip(made.each(scaled, 1.0), parts, strict=True)):
        np.testing.assert_array_equal(result, part * 2.0 + 10 * k)
