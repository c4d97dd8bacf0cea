"""Adam on one vector takes PyTorch's steps."""

import copy

import pytest
import torch

from harmonrank.training.flat_adam import FlatAdam


def optimizer_of(parameter, **options):
    return torch.optim.Adam([parameter], lr=0.01, fused=True, **options)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_both_go_to_the_same_place(decay):
    generator = torch.Generator().manual_seed(0)
    ours = torch.nn.Parameter(torch.randn(50, generator=generator))
    theirs = copy.deepcopy(ours)
    slow = optimizer_of(theirs, weight_decay=decay)
    adam = optimizer_of(ours, weight_decay=decay)
    fast = FlatAdam(adam)
    for _ in range(200):
        gradient = torch.randn(50, generator=generator)
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        fast.step()
        slow.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    for name in ("step", "exp_avg", "exp_avg_sq"):
        torch.testing.assert_close(
            adam.state[ours][name], slow.state[theirs][name], rtol=1e-5, atol=1e-7
        )


def test_only_a_plain_adam_fits():
    parameter = torch.nn.Parameter(torch.zeros(2))
    assert FlatAdam.fits(optimizer_of(parameter))
    assert not FlatAdam.fits(optimizer_of(parameter, amsgrad=True))
    assert not FlatAdam.fits(torch.optim.SGD([parameter], lr=0.1))
