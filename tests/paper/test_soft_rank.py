import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harmonrank.metrics import rank
from harmonrank.paper.soft_rank import soft_rank
from harmonrank.support import UsageError
from reference import soft_rank_by_minmax

both = pytest.mark.parametrize("regularization", ["l2", "kl"])
scales = pytest.mark.parametrize("scale", ["std", "none"])
lists = st.lists(st.floats(-5, 5, width=32), min_size=2, max_size=12).filter(
    lambda scores: np.std(scores) > 1e-3
)


def draw(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def close(actual, expected, tolerance=1e-9):
    torch.testing.assert_close(
        actual, torch.as_tensor(expected, dtype=actual.dtype), rtol=tolerance, atol=tolerance
    )


@both
@pytest.mark.parametrize("strength", [0.03, 0.3, 1.0, 3.0, 30.0])
def test_soft_rank_is_the_projection(regularization, strength):
    scores = draw(15).sort().values
    expected = soft_rank_by_minmax(scores.numpy() / strength, kl=regularization == "kl")
    close(
        soft_rank(scores, strength=strength, regularization=regularization, scale="none"), expected
    )


@pytest.mark.parametrize("strength", [0.1, 0.5, 2.0])
def test_no_point_of_the_permutahedron_is_nearer(strength):
    z = draw(6) / strength
    r = soft_rank(z, strength=1.0, scale="none")
    corners = torch.tensor(list(itertools.permutations(range(1, 7))), dtype=torch.float64)
    # A projection sees every corner at a right angle or more.
    assert float(((corners - r) @ (z - r)).max()) < 1e-9
    close(r.sum(), 21.0)


@both
@scales
def test_soft_rank_becomes_rank_as_strength_falls(regularization, scale):
    scores = draw(3, 50)
    soft = soft_rank(scores, strength=1e-9, regularization=regularization, scale=scale)
    close(soft, rank(scores))


def test_a_large_strength_is_linear_in_the_scores():
    scores = draw(200)
    standard = (scores - scores.mean()) / scores.std(correction=0)
    close(soft_rank(scores, strength=50.0), 100.5 + standard * 200 / 50)


@both
@scales
@given(scores=lists, seed=st.integers(0, 9))
def test_the_order_of_items_is_irrelevant(regularization, scale, scores, seed):
    s = torch.tensor(scores, dtype=torch.float64)
    turn = torch.from_numpy(np.random.default_rng(seed).permutation(len(scores)))
    close(
        soft_rank(s[turn], regularization=regularization, scale=scale),
        soft_rank(s, regularization=regularization, scale=scale)[turn],
    )


@both
@given(scores=lists, shift=st.floats(-100, 100), factor=st.floats(1e-3, 1e3))
def test_shift_and_scale_of_the_scores_are_irrelevant(regularization, scores, shift, factor):
    s = torch.tensor(scores, dtype=torch.float64)
    moved = soft_rank(s * factor + shift * factor, regularization=regularization)
    close(moved, soft_rank(s, regularization=regularization), tolerance=1e-6)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
@both
def test_scores_of_any_magnitude(regularization, size):
    scores = draw(40)
    close(
        soft_rank(scores * size, regularization=regularization),
        soft_rank(scores, regularization=regularization),
        tolerance=1e-6,
    )


def test_twice_the_batch_is_the_same_ranking():
    scores = draw(300)
    once, twice = soft_rank(scores), soft_rank(torch.cat([scores, scores]))
    close(twice, torch.cat([once, once]) * 2 - 0.5, tolerance=1e-10)


def test_twice_the_batch_moves_relative_kl_ranks_by_less_than_one_place():
    scores = draw(300)
    once = soft_rank(scores, regularization="kl")
    twice = soft_rank(torch.cat([scores, scores]), regularization="kl")
    assert float((twice[:300] / 600 - once / 300).abs().max()) < 1 / 300


@both
@scales
def test_batch_equals_one_by_one(regularization, scale):
    scores, weights = draw(2, 3, 40), draw(3, 40, seed=1).abs()
    options = {"regularization": regularization, "scale": scale}
    batch, shares = soft_rank(scores, weights=weights, return_share=True, **options)
    assert shares.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        alone, share = soft_rank(scores[i, j], weights=weights[j], return_share=True, **options)
        assert torch.equal(batch[i, j], alone)
        assert shares[i, j] == share


@both
@scales
def test_tied_scores_share_a_rank(regularization, scale):
    scores = torch.tensor([2.0, 1.0, 2.0, 0.0, 2.0])
    soft = soft_rank(scores, strength=1e-6, regularization=regularization, scale=scale)
    close(soft, torch.tensor([4.0, 2.0, 4.0, 1.0, 4.0]))


@both
@scales
@pytest.mark.parametrize("value", [0.0, 0.1, -1e30])
def test_equal_scores_all_rank_in_the_middle_without_gradient(regularization, scale, value):
    scores = torch.full((7,), value, dtype=torch.float64, requires_grad=True)
    soft = soft_rank(scores, regularization=regularization, scale=scale)
    close(soft.detach(), torch.full((7,), 4.0, dtype=torch.float64))
    if scale == "std":
        (gradient,) = torch.autograd.grad(soft[0], scores)
        assert torch.equal(gradient, torch.zeros(7, dtype=torch.float64))


@both
@scales
@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (3, 0), (2, 1)])
def test_empty_and_single_scores(regularization, scale, shape):
    scores = torch.zeros(shape, requires_grad=True)
    soft, share = soft_rank(scores, regularization=regularization, scale=scale, return_share=True)
    soft.sum().backward()
    assert torch.equal(soft, torch.ones(shape))
    assert torch.equal(scores.grad, torch.zeros(shape))
    assert torch.equal(torch.as_tensor(share), torch.zeros(shape[:-1]).to(torch.as_tensor(share)))


def test_share_counts_items_that_are_not_alone_in_their_block():
    scores = torch.tensor([0.0, 0.4, 5.0, 9.0, 9.3])
    assert soft_rank(scores, scale="none", return_share=True)[1] == 0.8
    assert soft_rank(scores, strength=1e-3, return_share=True)[1] == 0.0
    assert soft_rank(scores, strength=1e3, return_share=True)[1] == 1.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@both
def test_narrow_scores_give_the_float64_result_rounded(regularization, dtype):
    scores = draw(2, 500).to(dtype).requires_grad_()
    wide = scores.detach().double().requires_grad_()
    soft, expected = (soft_rank(s, regularization=regularization) for s in (scores, wide))
    assert soft.dtype == dtype
    close(soft.detach(), expected.detach().to(dtype), tolerance=torch.finfo(dtype).eps)
    upstream = draw(2, 500, seed=3).to(dtype)
    soft.backward(upstream)
    expected.backward(upstream.double())
    assert scores.grad.dtype == dtype
    close(scores.grad, wide.grad.to(dtype), tolerance=8 * torch.finfo(dtype).eps)


def test_strided_scores_are_read_and_no_scores_are_written():
    scores = draw(30, 4)
    before = scores.clone()
    close(soft_rank(scores.T), torch.stack([soft_rank(column.clone()) for column in scores.T]))
    assert torch.equal(scores, before)


def test_scores_without_gradient_give_ranks_without_gradient():
    assert not soft_rank(draw(5)).requires_grad
    with torch.no_grad():
        assert not soft_rank(draw(5).requires_grad_()).requires_grad


def test_a_common_offset_costs_no_digits():
    scores = torch.tensor([0.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    close(soft_rank(scores + 2.0**40, strength=2.0**-10, scale="none"), [1.5, 1.5, 3.5, 3.5])


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (torch.tensor([1, 2]), {}, r"floating-point tensor. Got torch.int64"),
        ([1.0, 2.0], {}, r"floating-point tensor. Got list"),
        (torch.tensor(1.0), {}, "at least one axis"),
        (torch.tensor([0.0, torch.nan, torch.inf]), {}, "Got 2 NaN or infinite, .* position 1:"),
        (torch.tensor([[0.0], [-torch.inf]]), {"scale": "none"}, "Got 1 .* position 0 of row 1"),
        (torch.zeros(65505, dtype=torch.float16), {}, "float16 hold ranks up to 65504"),
        (torch.zeros(2), {"strength": 0.0}, "`strength` must be positive"),
        (torch.zeros(2), {"strength": torch.nan}, "`strength` must be positive"),
        (torch.zeros(2), {"regularization": "l1"}, "Unknown regularization 'l1'. Known: l2, kl"),
        (torch.zeros(2), {"regularization": "kll"}, "Unknown .* 'kll'. Did you mean 'kl'"),
        (torch.zeros(2), {"scale": "nome"}, "Unknown scale 'nome'. Did you mean 'none'"),
        (torch.zeros(2), {"weights": [1.0, -1.0]}, "not negative. Got -1.0"),
        (torch.zeros(2), {"weights": [1.0, 1.0, 1.0]}, r"broadcast to the scores, \(2,\)"),
        (torch.zeros(2), {"weights": torch.ones(2, requires_grad=True)}, "get no gradient"),
    ],
)
def test_misuse_is_answered(scores, options, message):
    with pytest.raises(UsageError, match=message):
        soft_rank(scores, **options)
