"""AUCM with its slope at once: the same numbers as autograd finds."""

import numpy as np
import pytest
import torch

from harmonrank.paper.losses import Patterns, aucm_loss, aucm_slope


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("patterns", [False, True])
def test_equals_autograd(weighted, offset, patterns):
    rng = np.random.default_rng(0)
    scores = torch.from_numpy((rng.normal(size=300) + offset).astype(np.float32)).requires_grad_()
    labels = torch.from_numpy((rng.random((300, 3)) < [0.05, 0.5, 0.0]).astype(np.uint8))
    v = torch.from_numpy(rng.random(300)) if weighted else None
    a, b, alpha, w = (torch.from_numpy(rng.random(3)) for _ in range(4))
    expected = aucm_loss(
        scores, labels, a + offset, b, alpha, margin=0.7, objective_weights=w, sample_weight=v
    )
    expected.backward()
    found = aucm_slope(
        scores.detach().numpy(),
        Patterns.of(labels) if patterns else labels,
        w.numpy(),
        a=a.numpy() + offset,
        b=b.numpy(),
        alpha=alpha.numpy(),
        margin=0.7,
        sample_weight=v,
    )
    assert found.loss == pytest.approx(expected.item(), rel=1e-9)
    np.testing.assert_allclose(found.slope, scores.grad.numpy(), rtol=1e-5, atol=1e-8)
    np.testing.assert_array_equal(found.present, [True, True, False])


def test_the_means_are_those_of_the_classes():
    scores, labels = np.float32([3, 1, 2, 0]), torch.tensor([[1, 0], [1, 0], [0, 0], [0, 0]])
    zero = np.zeros(2)
    found = aucm_slope(scores, labels, np.ones(2), a=zero, b=zero, alpha=zero)
    np.testing.assert_allclose(found.mean_positive, [2, 0])
    np.testing.assert_allclose(found.mean_negative, [1, 0])
    np.testing.assert_allclose(found.mean_gap[0], 1)
