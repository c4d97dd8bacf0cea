import numpy as np
import pytest

from harmonrank.paper.training.rows import request_batches
from harmonrank.support import UsageError


def test_batches_hold_whole_requests_and_every_row_once():
    rng = np.random.default_rng(0)
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 30, 500))])
    batches = request_batches(starts, 7, seed=[1, 2])
    np.testing.assert_array_equal(np.sort(np.concatenate(batches)), np.arange(starts[-1]))
    of_row = np.repeat(np.arange(500), np.diff(starts))
    owner = np.full(500, -1)
    for number, rows in enumerate(batches):
        assert (np.diff(rows) > 0).all()
        mine = np.unique(of_row[rows])
        assert (owner[mine] == -1).all()
        owner[mine] = number
    assert set(np.bincount(owner)) <= {71, 72}


def test_the_seed_decides_who_is_in_which_batch():
    starts = np.arange(0, 1001, 10)
    one, same, other = (request_batches(starts, 4, seed=[s]) for s in (1, 1, 2))
    for a, b in zip(one, same, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(one, other, strict=True))


def test_more_batches_than_requests_are_refused():
    with pytest.raises(UsageError, match="of which there are 2. Got 3 batches; raise `batch_rows`"):
        request_batches(np.array([0, 5, 9]), 3, seed=[0])
