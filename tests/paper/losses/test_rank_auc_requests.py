"""The rank loss within requests."""

import numpy as np
import pytest
import torch

from harmonrank.metrics import grouped_auc
from harmonrank.paper.losses import rank_auc_loss
from harmonrank.support import UsageError


def _batch(seed=0, rows=80, requests=12):
    rng = np.random.default_rng(seed)
    labels = torch.tensor(rng.random((rows, 3)) < [0.1, 0.4, 0.5]).to(torch.int8)
    return torch.tensor(rng.normal(size=rows)), labels, rng.integers(0, requests, rows), rng


def _loop(scores, labels, groups, weights, v):
    """Add up the losses of each request, objective by objective."""
    total = 0.0
    for m, w in enumerate(weights):
        lost, say = 0.0, 0.0
        for g in np.unique(groups):
            here = torch.from_numpy(np.flatnonzero(groups == g))
            y = labels[here, m].double()
            if 0 < (v[here] * y).sum() < v[here].sum():
                own = rank_auc_loss(scores[here], y, sample_weight=v[here])
                lost, say = lost + v[here].sum() * own, say + float(v[here].sum())
        total = total + (w * lost / say if say else 0.0)
    return total


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_a_loop_over_requests_and_so_does_the_gradient(weighted):
    scores, labels, groups, rng = _batch()
    v = torch.tensor(rng.exponential(size=80)) if weighted else torch.ones(80).double()
    w = torch.tensor([2.0, 1.0, 0.5]).double()
    a, b = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    given = v if weighted else None
    loss = rank_auc_loss(a, labels, requests=groups, objective_weights=w, sample_weight=given)
    loss.backward()
    by_hand = _loop(b, labels, groups, w.tolist(), v)
    by_hand.backward()
    assert loss.item() == pytest.approx(by_hand.item(), rel=1e-10)
    torch.testing.assert_close(a.grad, b.grad, rtol=1e-8, atol=1e-12)


def test_hard_ranks_give_the_metric():
    scores, labels, groups, _ = _batch(seed=1)
    loss = rank_auc_loss(scores, labels, requests=groups, strength=1e-9)
    within = grouped_auc(scores.numpy(), labels.numpy(), groups)
    assert loss.item() == pytest.approx((1 - within).sum(), abs=1e-9)


def test_the_gradient_is_that_of_finite_differences():
    scores, labels, groups, rng = _batch(seed=2)
    v, w = torch.tensor(rng.exponential(size=80)), torch.tensor([1.0, 2.0, 3.0])
    for given in (None, v):

        def loss(s, given=given):
            counts = {"objective_weights": w, "sample_weight": given}
            return rank_auc_loss(s, labels, requests=groups, **counts)

        assert torch.autograd.gradcheck(loss, scores.requires_grad_(), eps=1e-7, atol=1e-5)


def test_an_objective_that_no_request_shows_both_classes_of_is_absent():
    scores, labels = torch.arange(4.0), torch.tensor([[1, 1], [1, 0], [0, 0], [0, 1]])
    parts = rank_auc_loss(scores, labels, requests=[0, 0, 1, 1], return_parts=True)
    assert parts.absent == (0,)
    assert torch.isnan(parts.soft_auc[0])
    alone = rank_auc_loss(scores.requires_grad_(), labels, requests=[0, 1, 2, 3])
    alone.backward()
    assert alone.item() == 0.0
    assert not scores.grad.any()


def test_published_pairs_have_no_requests():
    scores, labels, groups, _ = _batch(seed=3)
    with pytest.raises(UsageError, match="`pairs` must be 'each' where `requests` are given"):
        rank_auc_loss(scores, labels, requests=groups, pairs="published")
