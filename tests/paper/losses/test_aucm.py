"""AUCM: the min-max problem and its solution agree."""

import pytest
import torch

from harmonrank.paper.losses import aucm_loss, pairwise_square_loss


def batch(seed=0, gap=0.4):
    generator = torch.Generator().manual_seed(seed)
    labels = (torch.rand(60, 2, generator=generator) < torch.tensor([0.2, 0.6])).double()
    scores = torch.randn(60, generator=generator, dtype=torch.float64) + gap * labels.sum(1)
    return scores, labels


def saddle(scores, labels, margin=1.0):
    a = torch.stack([scores[y == 1].mean() for y in labels.T])
    b = torch.stack([scores[y == 0].mean() for y in labels.T])
    return a, b, (margin - a + b).clamp(min=0)


def solved(scores, labels, margin=1.0):
    """Return Σ_m (Var⁺ + Var⁻ + [margin − Δμ]₊²)."""
    total = torch.zeros((), dtype=torch.float64)
    for y in labels.T:
        above, below = scores[y == 1], scores[y == 0]
        shortfall = (margin - above.mean() + below.mean()).clamp(min=0)
        total = total + above.var(correction=0) + below.var(correction=0) + shortfall.square()
    return total


@pytest.mark.parametrize("gap", [0.1, 5.0])
@pytest.mark.parametrize("margin", [0.5, 1.0])
def test_min_max_at_its_saddle_is_the_solved_loss(gap, margin):
    scores, labels = batch(gap=gap)
    a, b, alpha = saddle(scores, labels, margin)
    torch.testing.assert_close(
        aucm_loss(scores, labels, a, b, alpha, margin=margin),
        solved(scores, labels, margin=margin),
    )


def test_the_saddle_is_a_minimum_in_a_and_b_and_a_maximum_in_alpha():
    scores, labels = batch()
    a, b, alpha = (x.requires_grad_() for x in saddle(scores, labels))
    loss = aucm_loss(scores, labels, a, b, alpha)
    for slope in torch.autograd.grad(loss, (a, b, alpha)):
        torch.testing.assert_close(slope, torch.zeros_like(slope), atol=1e-12, rtol=0)
    a, b, alpha = a.detach(), b.detach(), alpha.detach()
    for step in (-0.05, 0.05):
        assert aucm_loss(scores, labels, a + step, b, alpha) > loss
        assert aucm_loss(scores, labels, a, b + step, alpha) > loss
        assert aucm_loss(scores, labels, a, b, alpha + step) < loss


def test_both_forms_have_one_gradient_in_the_scores():
    scores, labels = batch()
    a, b, alpha = saddle(scores, labels)
    scores.requires_grad_()
    (got,) = torch.autograd.grad(aucm_loss(scores, labels, a, b, alpha), scores)
    (expected,) = torch.autograd.grad(solved(scores, labels), scores)
    torch.testing.assert_close(got, expected)


def test_equals_the_papers_form_up_to_the_prevalence():
    scores, labels = batch()
    y, margin, a, b, alpha = labels[:, 0], 1.0, 0.3, -0.2, 0.6
    pi = y.mean()
    paper = (
        (1 - pi) * (scores - a).square() * y
        + pi * (scores - b).square() * (1 - y)
        + 2 * alpha * (pi * (1 - pi) * margin + pi * scores * (1 - y) - (1 - pi) * scores * y)
        - pi * (1 - pi) * alpha**2
    ).mean()
    ours = aucm_loss(scores, y, *(torch.tensor([x]).double() for x in (a, b, alpha)))
    torch.testing.assert_close(ours * pi * (1 - pi), paper)


def test_solved_loss_is_the_pairwise_square_below_the_margin():
    scores, labels = batch(gap=0.1)
    torch.testing.assert_close(solved(scores, labels), pairwise_square_loss(scores, labels))


def test_ascent_and_descent_meet_at_the_solved_loss():
    scores, labels = batch(gap=0.1)
    a, b, alpha = (torch.zeros(2, dtype=torch.float64, requires_grad=True) for _ in range(3))
    for _ in range(100):
        loss = aucm_loss(scores, labels, a, b, alpha)
        slopes = torch.autograd.grad(loss, (a, b, alpha))
        with torch.no_grad():
            for x, slope, sign in zip((a, b, alpha), slopes, (-1, -1, 1), strict=True):
                x += sign * 0.1 * slope
            alpha.clamp_(min=0)
    torch.testing.assert_close(loss, solved(scores, labels))


def test_an_absent_objective_leaves_its_variables_alone():
    scores, labels = batch()
    labels[:, 1] = 0
    a, b, alpha = (torch.full((2,), 0.5, requires_grad=True) for _ in range(3))
    for slope in torch.autograd.grad(aucm_loss(scores, labels, a, b, alpha), (a, b, alpha)):
        assert slope[0] != 0
        assert slope[1] == 0
