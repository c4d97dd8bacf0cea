"""A buffer deals every row into one batch of an epoch, in an order that the seed decides."""

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from harmonrank.data.rows import blocks as training
from harmonrank.data.rows.blocks import SpilledBlocks
from harmonrank.model.fit_rows import cut_rows
from harmonrank.paper.training import Arrays, BufferedRows, buffer
from harmonrank.paper.training_config import Plan, TrainingConfig

ROWS = 1000


@pytest.fixture(autouse=True)
def small_buffer(monkeypatch):
    monkeypatch.setattr(training, "BUFFER_ROWS", 256)
    monkeypatch.setattr(buffer, "_PIECE_ROWS", 16)


def buffered(batch_rows=20, rows=ROWS):
    """Return rows whose only score is their number."""
    numbers = np.arange(rows, dtype=np.float64)[:, None]
    codes, labels = np.zeros((rows, 1), np.uint8), (numbers % 2).astype(np.uint8)
    blocks = SpilledBlocks(cut_rows(numbers, codes, labels, numbers[:, 0], size=300).each(itself))

    def arrays(part):
        given = (part.scores, part.codes, part.labels, part.weight)
        return Arrays(*map(torch.from_numpy, given))

    return BufferedRows(blocks, arrays, batch_rows)


def itself(block):
    return block


def batches_of(rows, plan, seed=0, epoch=0, start=0):
    found, held = [], None
    for fresh, index in rows.steps(plan, seed, epoch, start):
        held = held if fresh is None else fresh
        assert len(held) <= 256
        batch = held.batch(torch.from_numpy(index))
        assert (batch.scores[:, 0] == batch.sample_weight).all()
        assert (batch.labels[:, 0] == batch.scores[:, 0] % 2).all()
        found.append(batch.scores[:, 0].long().tolist())
    return found


@pytest.mark.parametrize("passes", [1, 3])
def test_every_row_is_in_one_batch_of_a_pass(passes):
    rows = buffered()
    assert len(rows) == ROWS
    plan = Plan(steps=50 * passes, passes=passes, epochs=2, patience=2)
    found = batches_of(rows, plan)
    assert len(found) == plan.steps
    for again in range(passes):
        one = np.concatenate(found[50 * again : 50 * (again + 1)])
        assert sorted(one) == list(range(ROWS))
    assert {len(batch) for batch in found} <= {19, 20, 21}


def test_batches_depend_on_the_seed_and_the_epoch_alone():
    plan = TrainingConfig(batch_rows=20).plan(ROWS)
    first = batches_of(buffered(), plan, seed=3, epoch=1)
    assert batches_of(buffered(), plan, seed=3, epoch=1) == first
    assert batches_of(buffered(), plan, seed=4, epoch=1) != first
    assert batches_of(buffered(), plan, seed=3, epoch=2) != first


@pytest.mark.parametrize("start", [1, 12, 13, 49])
def test_an_epoch_goes_on_within_itself(start):
    plan = TrainingConfig(batch_rows=20, epochs=1).plan(ROWS)
    whole = batches_of(buffered(), plan)
    assert batches_of(buffered(), plan, start=start) == whole[start:]


def test_a_batch_has_rows_from_all_over_the_log():
    plan = TrainingConfig(batch_rows=30, epochs=1).plan(ROWS)
    spread = [np.ptp(batch) for batch in batches_of(buffered(30), plan)]
    assert min(spread) > ROWS / 3


def test_large_batches_have_a_larger_buffer():
    plan = TrainingConfig(batch_rows=500, epochs=1).plan(ROWS)
    rows = buffered(500)
    assert [len(index) for _, index in rows.steps(plan, 0, 0)] == [500, 500]


def test_the_digest_is_of_every_row():
    assert buffered().fingerprint() == buffered().fingerprint()
    assert buffered().fingerprint() != buffered(rows=ROWS - 1).fingerprint()
