"""Cross-entropy and label aggregation."""

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from harmonrank.paper.losses import bce_loss, label_aggregation_loss, optimal_label_values
from harmonrank.support import UsageError


def batch(rows=50, objectives=3):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(rows, objectives, generator=generator, dtype=torch.float64)
    return logits, torch.rand(rows, objectives, generator=generator).double()


def test_one_logit_is_the_same_logit_for_every_objective():
    logits, labels = batch()
    weights = torch.tensor([1.0, 0.2, 5.0], dtype=torch.float64)
    each = binary_cross_entropy_with_logits(logits[:, :1].expand(-1, 3), labels, reduction="none")
    result = bce_loss(logits[:, 0], labels, objective_weights=weights)
    torch.testing.assert_close(result, (each @ weights).mean())


def test_gradient_is_probability_minus_label_even_at_zero_and_far_out():
    scores = torch.tensor([0.0, -800.0, 800.0, 1e30], dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=torch.float64)
    (slope,) = torch.autograd.grad(bce_loss(scores, labels), scores)
    torch.testing.assert_close(slope, (torch.sigmoid(scores) - labels) / 4)


def test_an_objective_with_one_class_is_still_a_target():
    scores = torch.zeros(4, requires_grad=True)
    loss = bce_loss(scores, torch.zeros(4))
    loss.backward()
    assert loss.item() == pytest.approx(torch.tensor(2.0).log().item())
    assert (scores.grad > 0).all()


def test_label_aggregation_has_the_mean_value_as_minimiser():
    _, labels = batch()
    values = torch.tensor([3.0, 1.0, -2.0], dtype=torch.float64)
    best = (labels @ values).mean().expand(50).clone().requires_grad_()
    (slope,) = torch.autograd.grad(label_aggregation_loss(best, labels, values), best)
    assert slope.sum().item() == pytest.approx(0, abs=1e-12)


def test_label_aggregation_gradient_weights_and_edges():
    logits, labels = batch()
    scores, values = logits[:, 0].clone().requires_grad_(), torch.ones(3)
    weight = torch.arange(50)
    call = lambda s: label_aggregation_loss(s, labels, values, sample_weight=weight)  # noqa: E731
    assert torch.autograd.gradcheck(call, scores)
    repeated = label_aggregation_loss(
        scores.repeat_interleave(weight), labels.repeat_interleave(weight, 0), values
    )
    torch.testing.assert_close(call(scores), repeated)
    assert label_aggregation_loss(torch.zeros(0), torch.zeros(0, 3), values).item() == 0


def test_label_values_need_one_value_per_objective():
    logits, labels = batch()
    with pytest.raises(UsageError, match=r"`values` must have one value per objective, \(3,\)"):
        label_aggregation_loss(logits[:, 0], labels, torch.ones(2))


def test_optimal_values_divide_by_the_variance_of_the_label():
    prevalence = torch.tensor([0.1, 0.5], dtype=torch.float64)
    values = optimal_label_values(prevalence, torch.tensor([2.0, 1.0]))
    torch.testing.assert_close(values, torch.tensor([2 / 0.09, 4.0], dtype=torch.float64))


@pytest.mark.parametrize("prevalence", [0.0, 1.0, 1.5])
def test_optimal_values_need_both_classes(prevalence):
    with pytest.raises(UsageError, match="`prevalence` must lie strictly between 0 and 1"):
        optimal_label_values(torch.tensor([0.5, prevalence]))


def test_optimal_values_make_regression_rank_best():
    # Two cells of rows and two objectives in conflict: the plain label sum prefers the wrong cell.
    p = torch.tensor([[0.40, 0.001], [0.30, 0.05]], dtype=torch.float64)
    pi = p.mean(0)
    plain, best = p.sum(1), p @ optimal_label_values(pi)
    assert plain[0] > plain[1]
    assert best[1] > best[0]
    win = p[:, None] * (1 - p)  # (cell i positive, cell j negative, objective)
    pairs = pi * (1 - pi)
    auc_sum = ((win[1, 0] - win[0, 1]) / pairs).sum()
    assert auc_sum > 0
