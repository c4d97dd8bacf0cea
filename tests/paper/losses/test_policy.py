"""The policy gradient estimates the gradient it should."""

import pytest
import torch

from harmonrank.paper.losses import policy_gradient_loss
from harmonrank.support import UsageError

TARGET = torch.tensor([1.0, -0.5, 2.0], dtype=torch.float64)


def quadratic(actions):
    """Reward with a known expectation: E = −½(‖s − target‖² + n σ²)."""
    return -0.5 * (actions - TARGET).square().sum(-1)


@pytest.mark.parametrize("sigma", [0.3, 1.0])
@pytest.mark.parametrize("baseline", [0.0, -2.0])
def test_estimate_is_unbiased_on_a_quadratic_reward(sigma, baseline):
    scores = torch.tensor([0.2, 0.1, -0.4], dtype=torch.float64, requires_grad=True)
    draws = 100_000
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(draws, 3, generator=generator, dtype=torch.float64)
    reward = quadratic(scores.detach() + sigma * noise)
    loss = policy_gradient_loss(scores, noise, reward, baseline=baseline, sigma=sigma)
    (estimate,) = torch.autograd.grad(loss, scores)
    expected = scores.detach() - TARGET
    single = (reward - baseline)[:, None] * noise / sigma
    standard_error = single.std(0) / draws**0.5
    assert ((estimate - expected).abs() < 4 * standard_error).all()
    assert (standard_error < 0.06).all()


def test_baseline_lowers_the_variance():
    scores = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    noise = torch.randn(2000, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    reward = quadratic(noise) - 10
    spread = []
    for baseline in (torch.tensor(0.0), reward.mean()):
        slopes = [
            torch.autograd.grad(policy_gradient_loss(scores, n, r, baseline=baseline), scores)[0]
            for n, r in zip(noise[:300], reward[:300], strict=True)
        ]
        spread.append(torch.stack(slopes).var(0).sum())
    assert spread[1] < spread[0] / 5


def test_draws_are_averaged():
    scores = torch.randn(4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    noise = torch.randn(3, 4, generator=torch.Generator().manual_seed(3))
    reward = torch.tensor([1.0, 2.0, 3.0])
    mean = policy_gradient_loss(scores, noise, reward, baseline=0.5, sigma=0.1)
    alone = [
        policy_gradient_loss(scores, n, r, baseline=0.5, sigma=0.1)
        for n, r in zip(noise, reward, strict=True)
    ]
    torch.testing.assert_close(mean, torch.stack(alone).mean())


def test_gradient_flows_to_the_scores_alone():
    scores = torch.zeros(2, requires_grad=True)
    reward = torch.tensor(1.0, requires_grad=True)
    policy_gradient_loss(scores, torch.ones(2), reward).backward()
    assert reward.grad is None
    assert scores.grad.tolist() == [-1.0, -1.0]


def test_a_reward_at_the_baseline_and_an_empty_batch_teach_nothing():
    scores = torch.zeros(2, requires_grad=True)
    policy_gradient_loss(scores, torch.ones(2), torch.tensor(3.0), baseline=3.0).backward()
    assert not scores.grad.any()
    assert policy_gradient_loss(torch.zeros(0), torch.zeros(0), torch.tensor(1.0)).item() == 0


@pytest.mark.parametrize(
    ("noise", "reward", "sigma", "message"),
    [
        (torch.ones(3), torch.tensor(1.0), 1.0, r"`noise` must be .* 2 rows\. Got \(3,\)"),
        (torch.ones(5, 2), torch.tensor(1.0), 1.0, r"`reward` must have one .* \(5,\)\. Got \(\)"),
        (torch.ones(2), torch.tensor(torch.nan), 1.0, r"must be finite\. Got nan or infinity"),
        (torch.ones(2), torch.tensor(1.0), 0.0, r"`sigma` must be a finite number above 0"),
    ],
)
def test_wrong_arguments_are_named(noise, reward, sigma, message):
    with pytest.raises(UsageError, match=message):
        policy_gradient_loss(torch.zeros(2), noise, reward, sigma=sigma)
