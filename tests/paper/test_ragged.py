import numpy as np
import pytest
import torch

from harmonrank.paper.soft_rank import soft_rank
from harmonrank.support import UsageError


def _batch(seed=0, rows=60, requests=9, *, ties=False):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=rows)
    scores = scores.round(1) if ties else scores
    return torch.tensor(scores), rng.integers(0, requests, rows) * 7 - 3, rng


def _loop(scores, groups, weights=None, **options):
    """Rank request by request."""
    parts = torch.zeros_like(scores)
    for g in np.unique(groups):
        here = torch.from_numpy(np.flatnonzero(groups == g))
        own = None if weights is None else weights[here]
        parts = parts.index_add(0, here, soft_rank(scores[here], weights=own, **options))
    return parts


@pytest.mark.parametrize("regularization", ["l2", "kl"])
@pytest.mark.parametrize("scale", ["std", "none"])
@pytest.mark.parametrize("strength", [0.3, 2.0, 9.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_ranks_and_gradient_equal_a_loop_over_requests(regularization, scale, strength, weighted):
    scores, groups, rng = _batch(ties=True)
    weights = torch.tensor(rng.exponential(size=60)) if weighted else None
    pull = torch.tensor(rng.normal(size=60))
    options = {"regularization": regularization, "scale": scale, "strength": strength}
    a, b = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    once = soft_rank(a, groups=groups, weights=weights, **options)
    each = _loop(b, groups, weights, **options)
    torch.testing.assert_close(once, each, rtol=1e-12, atol=1e-12)
    (once @ pull).backward()
    (each @ pull).backward()
    torch.testing.assert_close(a.grad, b.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("regularization", ["l2", "kl"])
def test_the_gradient_is_that_of_finite_differences(regularization):
    scores, groups, _ = _batch(seed=1, rows=24, requests=4)
    scores.requires_grad_()

    def ranks(s):
        return soft_rank(s, groups=groups, strength=1.5, regularization=regularization)

    assert torch.autograd.gradcheck(ranks, scores, eps=1e-7, atol=1e-5)


def test_one_request_is_all_rows_and_rows_alone_have_rank_one():
    scores, _, _ = _batch(seed=2)
    torch.testing.assert_close(soft_rank(scores, groups=np.zeros(60)), soft_rank(scores))
    ranks, share = soft_rank(scores, groups=torch.arange(60), return_share=True)
    assert (ranks == 1).all()
    assert share == 0.0


def test_names_serve_as_ids_and_float32_stays_float32():
    scores, groups, _ = _batch(seed=3)
    named = soft_rank(scores.float(), groups=groups.astype(str))
    assert named.dtype == torch.float32
    torch.testing.assert_close(named, soft_rank(scores.float(), groups=groups))
    assert len(soft_rank(torch.zeros(0), groups=[])) == 0


def test_what_does_not_fit_is_refused():
    with pytest.raises(
        UsageError, match=r"`groups` must have one id per score, \(3,\). Got \(2,\)"
    ):
        soft_rank(torch.zeros(3), groups=[1, 2])
    with pytest.raises(UsageError, match="`groups` are of scores of one axis. Got 2 axes"):
        soft_rank(torch.zeros(2, 3), groups=[1, 2, 3])
    with pytest.raises(UsageError, match="Got 1 NaN or infinite"):
        soft_rank(torch.tensor([0.0, float("nan"), 1.0]), groups=[1, 1, 2])
