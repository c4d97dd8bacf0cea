"""Pair losses: what each one adds to the common claims."""

from functools import partial

import pytest
import torch

from harmonrank.paper.losses import pairwise_logistic_loss, pairwise_square_loss
from harmonrank.support import UsageError


def batch(rows=3000, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, generator=generator, dtype=torch.float64)
    labels = torch.rand(rows, 2, generator=generator) < torch.tensor([0.02, 0.3])
    return scores.to(dtype), labels.double()


def gaps(scores, y):
    return scores[y == 1][:, None] - scores[y == 0]


@pytest.mark.parametrize("margin", [0.5, 1.0, 3.0])
def test_square_equals_the_pair_matrix(margin):
    scores, labels = batch()
    short = [margin - gaps(scores, y) for y in labels.T]
    square = sum(x.square().mean() for x in short)
    torch.testing.assert_close(pairwise_square_loss(scores, labels, margin=margin), square)


def test_square_keeps_its_digits_far_from_zero():
    scores, labels = batch()
    far = pairwise_square_loss((scores * 2**20).round() / 2**20 + 2**24, labels)
    near = pairwise_square_loss((scores * 2**20).round() / 2**20, labels)
    assert far.item() == pytest.approx(near.item(), rel=1e-8)


@pytest.mark.parametrize("width", [0.0, 1.0, 29.9, 63.9, 64.1, 1000.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_is_exact_for_narrow_and_wide_scores(width, weighted):
    scores, labels = batch(500)
    scores = (scores - scores.min()) / (scores.max() - scores.min()) * width - 17
    scores.requires_grad_()
    weight = torch.rand(500, generator=torch.Generator().manual_seed(1)).double()
    weight = weight if weighted else torch.ones_like(weight)
    loss = pairwise_logistic_loss(scores, labels, sample_weight=weight)
    expected = torch.zeros((), dtype=torch.float64)
    for y in labels.T:
        pair_weight = torch.outer(weight[y == 1], weight[y == 0])
        losses = torch.nn.functional.softplus(-gaps(scores, y), threshold=40)
        expected = expected + (pair_weight * losses).sum() / pair_weight.sum()
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)
    (got,) = torch.autograd.grad(loss, scores)
    (slope,) = torch.autograd.grad(expected, scores)
    torch.testing.assert_close(got, slope, rtol=1e-10, atol=1e-15)


def test_a_second_derivative_is_refused():
    scores, labels = batch(20, seed=3)
    labels[0], labels[1] = 0, 1
    scores.requires_grad_()
    for loss in (pairwise_logistic_loss, pairwise_square_loss):
        (slope,) = torch.autograd.grad(loss(scores, labels), scores, create_graph=True)
        with pytest.raises(UsageError, match="no second derivative"):
            torch.autograd.grad(slope.sum(), scores)


def test_no_gradient_is_recorded_without_need():
    scores, labels = batch(50)
    assert not pairwise_logistic_loss(scores, labels).requires_grad


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_logistic_on_a_grid_equals_the_pairs_of_a_whole_batch(shift):
    scores, labels = batch(4000, seed=5)
    scores = (3 * scores + shift).requires_grad_()
    loss = pairwise_logistic_loss(scores, labels)
    softplus = partial(torch.nn.functional.softplus, threshold=40)
    expected = sum(softplus(-gaps(scores, y)).mean() for y in labels.T)
    torch.testing.assert_close(loss, expected, rtol=1e-13, atol=0)
    (got,) = torch.autograd.grad(loss, scores)
    (slope,) = torch.autograd.grad(expected, scores)
    assert (got - slope).abs().max() < 1e-12 * slope.abs().max()


def test_logistic_does_not_depend_on_where_the_grid_begins():
    scores, labels = batch(500, seed=6)
    lowest = torch.tensor([0.0]), torch.zeros(1, 2)
    for place in (0.0, 0.031, 0.0625, 0.1249):
        more = torch.cat([scores, lowest[0] - 8 - place]), torch.cat([labels, lowest[1]])
        losses = [torch.nn.functional.softplus(-gaps(more[0], y)).mean() for y in more[1].T]
        torch.testing.assert_close(pairwise_logistic_loss(*more), sum(losses), rtol=1e-12, atol=0)


def test_logistic_keeps_its_digits_beside_a_heavy_row():
    scores, labels = batch(300, seed=7)
    labels[0] = torch.tensor([1.0, 1 - 1e-12])
    weight = torch.ones(300, dtype=torch.float64)
    weight[0] = 1e12
    loss = pairwise_logistic_loss(scores, labels, sample_weight=weight)
    expected = torch.zeros((), dtype=torch.float64)
    for y in labels.T:
        pairs = torch.outer(weight * y, weight * (1 - y))
        losses = torch.nn.functional.softplus(-(scores[:, None] - scores))
        expected += (pairs * losses).sum() / pairs.sum()
    torch.testing.assert_close(loss, expected, rtol=1e-11, atol=0)
