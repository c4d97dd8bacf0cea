import numpy as np
import pytest
import torch
from scipy.stats import rankdata

from harmonrank.metrics import rank
from harmonrank.support import UsageError

rng = np.random.default_rng(1)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.uint8, bool])
def test_ties_share_their_mean_rank(dtype):
    scores = (20 * rng.random((4, 3, 57))).astype(dtype)
    np.testing.assert_array_equal(rank(scores), rankdata(scores, axis=-1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int32])
def test_a_tensor_gives_the_ranks_of_its_array(dtype):
    scores = torch.from_numpy(20 * rng.random((3, 40))).to(dtype)
    ranks = rank(scores)
    assert ranks.dtype == torch.float64
    np.testing.assert_array_equal(ranks, rankdata(scores.double().numpy(), axis=-1))


def test_a_score_with_a_gradient_has_a_rank_without_one():
    assert not rank(torch.randn(5, requires_grad=True)).requires_grad


def test_infinities_rank_at_the_ends():
    np.testing.assert_array_equal(rank(np.array([np.inf, 0.0, -np.inf])), [3, 2, 1])


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 4), (3, 0)])
def test_empty_and_single_scores(shape):
    np.testing.assert_array_equal(rank(np.zeros(shape, np.float32)), np.ones(shape))


def test_nan_is_refused_by_count_and_position():
    scores = np.zeros((2, 3))
    scores[1, 1:] = np.nan
    with pytest.raises(UsageError, match=r"Got 2, the first at position \(1, 1\)"):
        rank(scores)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.float64(1), "at least one axis"),
        (np.array(["a"]), "must be numbers"),
        (np.array([2**60]), "below 2"),
    ],
)
def test_what_has_no_rank_is_refused(scores, message):
    with pytest.raises(UsageError, match=message):
        rank(scores)
