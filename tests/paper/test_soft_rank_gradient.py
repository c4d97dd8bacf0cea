import numpy as np
import pytest
import torch

from harmonrank.paper.soft_rank import soft_rank
from harmonrank.support import UsageError

both = pytest.mark.parametrize("regularization", ["l2", "kl"])
scales = pytest.mark.parametrize("scale", ["std", "none"])


def draw(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


@both
@scales
@pytest.mark.parametrize("strength", [0.2, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.0, 0.3, 5.0, 0.0, 1.0, 1.0]])
def test_gradient_is_the_slope(regularization, scale, strength, weights):
    def operator(scores):
        return soft_rank(
            scores, strength=strength, regularization=regularization, scale=scale, weights=weights
        )

    assert torch.autograd.gradcheck(operator, draw(3, 8).requires_grad_())


@both
@scales
def test_a_weight_of_k_acts_like_k_copies(regularization, scale):
    rng = np.random.default_rng(5)
    scores = torch.from_numpy(rng.normal(size=30)).round(decimals=1)
    counts = torch.from_numpy(rng.integers(0, 5, 30))
    options = {"strength": 2.0, "regularization": regularization, "scale": scale}
    light = scores.clone().requires_grad_()
    weighted = soft_rank(light, weights=counts, **options)
    # One more parameter per item: its copies move together.
    copied = scores.clone().requires_grad_()
    copies = soft_rank(copied.repeat_interleave(counts), **options)
    torch.testing.assert_close(weighted.repeat_interleave(counts), copies)
    upstream = draw(30, seed=6) * (counts > 0)
    (expected,) = torch.autograd.grad(
        copies, copied, (upstream / counts.clamp(min=1)).repeat_interleave(counts)
    )
    (gradient,) = torch.autograd.grad(weighted, light, upstream)
    torch.testing.assert_close(gradient, expected)


@both
@scales
def test_an_item_without_weight_is_ranked_and_moves_nobody(regularization, scale):
    scores, weights = draw(20), torch.ones(20)
    weights[[3, 11]] = 0
    options = {"strength": 2.0, "regularization": regularization, "scale": scale}
    kept = soft_rank(scores[weights > 0], **options)
    torch.testing.assert_close(soft_rank(scores, weights=weights, **options)[weights > 0], kept)
    moved = scores.clone()
    moved[3] = 100.0
    ranks = soft_rank(moved, weights=weights, **options)
    torch.testing.assert_close(ranks[weights > 0], kept)
    assert float(ranks[3]) >= float(kept.max())


@both
def test_items_that_all_lack_weight_tie_without_gradient(regularization):
    scores = draw(5).requires_grad_()
    soft = soft_rank(scores, regularization=regularization, weights=torch.zeros(5))
    soft.sum().backward()
    assert torch.equal(soft, torch.full((5,), 0.5, dtype=torch.float64))
    assert torch.equal(scores.grad, torch.zeros(5, dtype=torch.float64))


@both
def test_equal_weights_of_one_change_nothing(regularization):
    scores = draw(4, 25)
    plain, weighted = (
        soft_rank(scores, regularization=regularization, weights=weights)
        for weights in (None, np.ones(25))
    )
    torch.testing.assert_close(plain, weighted)


def test_gradient_sums_to_zero_and_ignores_the_scale_of_the_scores():
    scores = draw(50).requires_grad_()
    (gradient,) = torch.autograd.grad(soft_rank(scores), scores, draw(50, seed=1))
    assert abs(float(gradient.sum())) < 1e-9
    assert abs(float(gradient @ (scores.detach() - scores.detach().mean()))) < 1e-9


def test_large_scores_keep_a_finite_kl_gradient():
    scores = (1e4 * draw(50)).requires_grad_()
    soft = soft_rank(scores, strength=1e-3, regularization="kl", scale="none")
    (gradient,) = torch.autograd.grad(soft.sum(), scores)
    assert torch.equal(gradient, torch.zeros(50, dtype=torch.float64))


def test_a_second_derivative_is_refused():
    scores = draw(6).requires_grad_()
    (gradient,) = torch.autograd.grad(soft_rank(scores)[0], scores, create_graph=True)
    with pytest.raises(UsageError, match="soft_rank has no second derivative"):
        gradient.sum().backward()


def test_scores_changed_in_place_are_noticed():
    scores = draw(6).requires_grad_()
    held = scores * 1.0
    soft = soft_rank(held)
    held += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        soft.sum().backward()
