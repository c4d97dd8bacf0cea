"""The rank loss: one soft rank, every objective."""

import pytest
import torch

from harmonrank.paper.losses import rank_auc_loss
from harmonrank.paper.soft_rank import soft_rank
from harmonrank.support import UsageError


def batch(rows=200, objectives=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, generator=generator, dtype=torch.float64)
    chance = torch.sigmoid(scores[:, None] - torch.arange(objectives))
    return scores, (torch.rand(rows, objectives, generator=generator) < chance).double()


@pytest.mark.parametrize("regularization", ["l2", "kl"])
def test_equals_the_rank_sum_formula(regularization):
    scores, labels = batch()
    r = soft_rank(scores, strength=0.3, regularization=regularization)
    expected = 0.0
    for y in labels.T:
        n_pos, n_neg = y.sum(), (1 - y).sum()
        expected += 1 - (r @ y - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg)
    got = rank_auc_loss(scores, labels, strength=0.3, regularization=regularization)
    torch.testing.assert_close(got, expected)


def test_gradient_is_one_pass_back_with_the_summed_coefficients():
    scores, labels = batch()
    scores.requires_grad_()
    w = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    (got,) = torch.autograd.grad(rank_auc_loss(scores, labels, objective_weights=w), scores)
    c = labels @ (w / (labels.sum(0) * (1 - labels).sum(0)))
    (expected,) = torch.autograd.grad(soft_rank(scores), scores, -c)
    torch.testing.assert_close(got, expected)


def test_a_perfect_order_costs_nothing_and_a_reversed_one_everything():
    labels = torch.tensor([0, 0, 0, 1, 1])
    scores = torch.arange(5.0)
    assert rank_auc_loss(scores, labels, strength=1e-6).item() == pytest.approx(0, abs=1e-9)
    assert rank_auc_loss(-scores, labels, strength=1e-6).item() == pytest.approx(1)


def test_scores_that_are_all_tied_are_worth_one_half():
    assert rank_auc_loss(torch.ones(6), torch.tensor([1, 0, 0, 1, 0, 0])).item() == 0.5


@pytest.mark.parametrize("strength", [0.01, 1.0, 5.0])
def test_scale_of_the_scores_does_not_matter(strength):
    scores, labels = batch()
    once = rank_auc_loss(scores, labels, strength=strength)
    torch.testing.assert_close(rank_auc_loss(1000 * scores, labels, strength=strength), once)


def test_repeating_the_batch_changes_nothing():
    scores, labels = batch()
    once = rank_auc_loss(scores, labels)
    torch.testing.assert_close(rank_auc_loss(scores.repeat(7), labels.repeat(7, 1)), once)


def test_parts_name_the_absent_objectives():
    scores, labels = batch()
    labels[:, 1] = 0
    parts = rank_auc_loss(scores, labels, return_parts=True)
    assert parts.absent == (1,)
    assert torch.isnan(parts.soft_auc).tolist() == [False, True, False]
    assert parts.loss.item() == pytest.approx(2 - parts.soft_auc[[0, 2]].sum().item())
    assert 0 < parts.gradient_share <= 1


def test_parts_of_a_batch_without_pairs():
    scores, _ = batch()
    parts = rank_auc_loss(scores.requires_grad_(), torch.ones(200, 2), return_parts=True)
    assert parts.absent == (0, 1)
    assert parts.soft_auc.isnan().all()
    assert parts.gradient_share == 0
    parts.loss.backward()
    assert not scores.grad.any()


def test_soft_auc_approaches_auc_as_strength_falls():
    scores, labels = batch()
    beaten = [scores[y == 1][:, None] > scores[y == 0] for y in labels.T]
    auc = torch.stack([pairs.double().mean() for pairs in beaten])
    gap = [
        (rank_auc_loss(scores, labels, strength=e, return_parts=True).soft_auc - auc).abs().max()
        for e in (3.0, 0.3, 0.03, 1e-9)
    ]
    assert gap == sorted(gap, reverse=True)
    assert gap[-1] < 1e-12


def test_a_vanishing_strength_shows_in_the_gradient_share():
    scores, labels = batch()
    shares = [
        rank_auc_loss(scores, labels, strength=e, return_parts=True).gradient_share
        for e in (8.0, 1e-12)
    ]
    assert shares[0] > 0.9
    assert shares[1] == 0


def test_descent_finds_the_order():
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(500, 4, generator=generator, dtype=torch.float64)
    truth = torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float64)
    labels = (features @ truth > 1).double()
    weights = torch.full((4,), 0.1, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([weights], lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        rank_auc_loss(features @ weights, labels, strength=0.5).backward()
        optimiser.step()
    assert rank_auc_loss(features @ weights, labels, strength=1e-6).item() < 0.005


def test_strength_must_be_positive():
    scores, labels = batch()
    with pytest.raises(UsageError, match="strength"):
        rank_auc_loss(scores, labels, strength=0.0)


def test_published_pairs_count_all_the_same():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(400, generator=generator, dtype=torch.float64)
    labels = (torch.rand(400, 3, generator=generator) < torch.tensor([0.02, 0.2, 0.5])).double()
    positive = labels.sum(dim=0)
    pairs = positive * (400 - positive)
    parts = rank_auc_loss(scores, labels, strength=2.0, return_parts=True)
    expected = (pairs * (1 - parts.soft_auc)).sum() / pairs.mean()
    result = rank_auc_loss(scores, labels, strength=2.0, pairs="published")
    torch.testing.assert_close(result, expected)


def test_one_objective_is_the_same_both_ways():
    scores, labels = torch.tensor([0.1, 0.4, 0.2, 0.9]), torch.tensor([0, 1, 0, 1])
    each, published = (rank_auc_loss(scores, labels, pairs=p) for p in ("each", "published"))
    assert each == published


def test_an_absent_objective_counts_nothing_in_published_pairs():
    scores = torch.randn(50, generator=torch.Generator().manual_seed(0))
    labels = torch.zeros(50, 2)
    labels[:9, 0] = 1
    both = rank_auc_loss(scores, labels, pairs="published")
    assert both == rank_auc_loss(scores, labels[:, 0], pairs="published")


def test_an_unknown_way_to_count_pairs_is_refused():
    scores, labels = batch(20)
    with pytest.raises(UsageError, match="`pairs` must be 'each' or 'published'. Got 'all'."):
        rank_auc_loss(scores, labels, pairs="all")


@pytest.mark.parametrize("regularization", ["l2", "kl"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_slope_is_that_of_the_rank_sums_of_soft_ranks(regularization, weighted):
    scores, labels = batch()
    v = torch.rand(200, dtype=torch.float64) + 0.1 if weighted else torch.ones(200).double()
    scores.requires_grad_()
    options = {"strength": 0.3, "regularization": regularization}
    r = soft_rank(scores, weights=v if weighted else None, **options)
    expected = torch.zeros((), dtype=torch.float64)
    for y in labels.T:
        above, below = v @ y, v @ (1 - y)
        expected = expected + 1 - ((v * y) @ r - above * (above + 1) / 2) / (above * below)
    (slope,) = torch.autograd.grad(expected, scores)
    given = {"sample_weight": v} if weighted else {}
    parts = rank_auc_loss(scores, labels, return_parts=True, **options, **given)
    torch.testing.assert_close(parts.loss, expected)
    torch.testing.assert_close(torch.from_numpy(parts.slope), slope)
    (result,) = torch.autograd.grad(parts.loss, scores)
    torch.testing.assert_close(result, slope)
