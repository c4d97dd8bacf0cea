"""The rank loss with its slope at once: the same numbers as autograd finds."""

import numpy as np
import pytest
import torch

from harmonrank.paper.losses import Patterns, rank_auc_loss, rank_auc_slope
from harmonrank.support.errors import UsageError


def batch(rows=500, objectives=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, generator=generator)
    chance = torch.sigmoid(scores[:, None] - torch.arange(objectives))
    return scores, (torch.rand(rows, objectives, generator=generator) < chance).to(torch.uint8)


@pytest.mark.parametrize("regularization", ["l2", "kl"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("strength", [0.3, 3.0])
@pytest.mark.parametrize("pairs", ["each", "published"])
def test_equals_autograd(regularization, weighted, strength, pairs):
    scores, labels = batch()
    w = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    v = torch.rand(len(scores), dtype=torch.float64) if weighted else None
    scores.requires_grad_()
    options = {"strength": strength, "regularization": regularization, "sample_weight": v}
    options["pairs"] = pairs
    patterns = Patterns.of(labels)
    expected = rank_auc_loss(scores, patterns, objective_weights=w, **options, return_parts=True)
    expected.loss.backward()
    found = rank_auc_slope(scores.detach().numpy(), patterns, w.numpy(), **options)
    assert found.loss == pytest.approx(expected.loss.item(), rel=1e-13)
    assert found.gradient_share == expected.gradient_share
    np.testing.assert_allclose(found.slope, scores.grad.numpy(), rtol=1e-6, atol=1e-12)


def test_patterns_and_labels_mean_the_same():
    scores, labels = batch()
    v = torch.rand(len(scores), dtype=torch.float64)
    for weights in (None, v):
        one = rank_auc_loss(scores, labels, sample_weight=weights)
        two = rank_auc_loss(scores, Patterns.of(labels), sample_weight=weights)
        torch.testing.assert_close(one, two, rtol=1e-12, atol=0)


def test_fractional_labels_have_a_slope_too():
    scores, labels = batch()
    soft = labels * 0.5
    scores.requires_grad_()
    rank_auc_loss(scores, soft).backward()
    found = rank_auc_slope(scores.detach().numpy(), soft, np.ones(3))
    np.testing.assert_allclose(found.slope, scores.grad.numpy(), rtol=1e-6)


def test_a_batch_without_positives_has_no_slope():
    found = rank_auc_slope(np.float32([1, 2]), Patterns.of(torch.zeros(2, 1).int()), np.ones(1))
    assert found.loss == 0
    assert found.gradient_share == 0
    np.testing.assert_array_equal(found.slope, [0, 0])


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(UsageError, match="`scores` must be finite"):
        rank_auc_slope(np.float32([1, np.nan]), Patterns.of(torch.eye(2).int()), np.ones(2))


def test_patterns_are_the_labels():
    labels = torch.randint(2, (50, 7))
    patterns = Patterns.of(labels)
    assert torch.equal(patterns.labels, labels.float())
    index = torch.tensor([3, 3, 0])
    assert torch.equal(patterns.take(index).labels, labels[index].float())
    assert patterns.shape == (50, 7)


def test_patterns_refuse_more_objectives_than_they_have_bits_for():
    with pytest.raises(UsageError, match="pass the labels themselves"):
        Patterns(torch.zeros(3), objectives=13)


def test_patterns_of_another_length_are_refused():
    with pytest.raises(UsageError, match="one row per score row, 3. Got 2"):
        rank_auc_loss(torch.zeros(3), Patterns.of(torch.eye(2).int()))


def test_an_unknown_way_to_count_pairs_is_refused():
    scores, labels = batch(20)
    with pytest.raises(UsageError, match="`pairs` must be 'each' or 'published'. Got 'all'."):
        rank_auc_loss(scores, labels, pairs="all")
