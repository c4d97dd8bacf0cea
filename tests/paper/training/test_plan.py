"""How long a network is trained: in steps, whatever the number of rows."""

import numpy as np
import pytest

from harmonrank.paper import TrainingConfig
from harmonrank.paper.training.rows import random_batches
from harmonrank.support import UsageError


@pytest.mark.parametrize("rows", [1, 999, 10_240, 50_000, 1_000_000, 20_000_000])
def test_about_as_many_steps_whatever_the_rows(rows):
    plan = TrainingConfig(steps=2_000, patience_steps=400).plan(rows)
    assert plan.steps * (plan.epochs - 1) < 2_000 <= plan.steps * plan.epochs
    assert plan.steps * (plan.patience - 1) < 400 <= plan.steps * plan.patience
    assert plan.steps % plan.passes == 0


def test_epochs_that_were_asked_for_are_passes():
    plan = TrainingConfig(epochs=3, batch_rows=100).plan(250)
    assert (plan.steps, plan.passes, plan.epochs) == (3, 1, 3)


@pytest.mark.parametrize("name", ["steps", "patience_steps", "epochs", "patience"])
def test_nothing_below_one(name):
    with pytest.raises(
        UsageError,
        match=f"Option '{name}' of TrainingConfig must be a whole number from 1 .* Got 0",
    ):
        TrainingConfig(**{name: 0})


@pytest.mark.parametrize(("rows", "batches"), [(1, 1), (7, 2), (1000, 7), (70_000, 300)])
def test_every_row_is_dealt_once_in_batches_of_one_size(rows, batches):
    dealt = random_batches(rows, batches, [1, 2])
    np.testing.assert_array_equal(np.sort(np.concatenate(dealt)), np.arange(rows))
    sizes = [len(batch) for batch in dealt]
    assert len(sizes) == batches
    assert max(sizes) - min(sizes) <= 1
    assert all((np.diff(batch) > 0).all() for batch in dealt)


def test_two_rows_share_a_batch_as_often_as_chance_says():
    # 6 rows in 2 batches of 3: a pair is together with probability 2/5.
    same_batch = np.zeros((6, 6))
    for seed in range(4000):
        for batch in random_batches(6, 2, [seed]):
            same_batch[np.ix_(batch, batch)] += 1
    share = same_batch[np.triu_indices(6, 1)] / 4000
    assert np.abs(share - 0.4).max() < 5 * np.sqrt(0.24 / 4000)


def test_the_seed_decides():
    first, again, other = (random_batches(100, 4, seed) for seed in ([1, 0], [1, 0], [1, 1]))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
