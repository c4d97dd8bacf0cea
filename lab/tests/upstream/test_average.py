import pytest
import torch
from torch import nn

from harmonrank_lab.upstream.loop import Average


def weights_of(average):
    with average.used():
        return average.network.weight.detach().clone()


def test_the_average_of_noisy_steps_is_closer_than_the_last_one():
    generator = torch.Generator().manual_seed(0)
    layer = nn.Linear(100, 1, bias=False)
    average = Average(layer, share=1 / 16)
    for _ in range(200):
        layer.weight.data.normal_(3.0, 1.0, generator=generator)
        average.update()
    last = (layer.weight - 3).square().mean()
    assert (weights_of(average) - 3).square().mean() < 0.1 * last


def test_the_first_weights_fade_fast():
    layer = nn.Linear(1, 1, bias=False)
    average = Average(layer, share=1 / 16)
    for value in [100.0] * 2 + [1.0] * 14:
        layer.weight.data.fill_(value)
        average.update()
    assert weights_of(average).item() == pytest.approx(1.0, abs=0.2)


def test_with_all_weight_on_the_newest_there_is_no_average():
    layer = nn.Linear(3, 1)
    average = Average(layer, share=1.0)
    for _ in range(3):
        layer.weight.data.normal_()
        average.update()
    torch.testing.assert_close(weights_of(average), layer.weight.detach())


def test_the_present_weights_come_back_and_the_state_holds_both():
    layer = nn.Linear(3, 1)
    average = Average(layer, share=0.1)
    average.update()
    layer.weight.data.add_(1)
    before = layer.weight.detach().clone()
    mean = weights_of(average)
    torch.testing.assert_close(layer.weight.detach(), before)
    other = Average(nn.Linear(3, 1), share=0.1)
    other.load_state_dict(average.state_dict())
    torch.testing.assert_close(weights_of(other), mean)
    torch.testing.assert_close(other.network.weight.detach(), before)
