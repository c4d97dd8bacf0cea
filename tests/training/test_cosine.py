import numpy as np
import torch
from torch import nn

from harmonrank.events import EpochEnded
from harmonrank.training import Arrays, Finished, LossValue, train
from harmonrank.training.cosine import CosineAdam, CosineConfig


class Slope(nn.Module):
    """One weight, times the first score."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, scores, context):
        return self.weight * scores[:, 0]


def rows(count=64):
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.random((count, 1)).astype(np.float32))
    return Arrays(scores, torch.zeros(count, 0, dtype=torch.long), torch.ones(count, 1))


def distance(fused, batch):
    return LossValue((fused - 2 * batch.scores[:, 0]).square().mean())


def test_the_rate_rises_then_falls_to_nothing():
    optimizer = CosineAdam([nn.Parameter(torch.zeros(1))], lr=0.5, steps=100, warm_up=10)
    rates = [optimizer.rate(step) for step in range(101)]
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    np.testing.assert_allclose([max(rates), rates[50], rates[100]], [0.49, 0.25, 0.0], atol=0.01)


def test_a_step_has_the_rate_of_its_number_also_after_a_reload():
    def stepped(optimizer, weight):
        weight.grad = torch.ones_like(weight)
        optimizer.step()
        return optimizer.param_groups[0]["lr"]

    weight = nn.Parameter(torch.zeros(1))
    first = CosineAdam([weight], lr=1.0, steps=20, warm_up=1)
    rates = [stepped(first, weight) for _ in range(10)]
    again = CosineAdam([weight], lr=1.0, steps=20, warm_up=1)
    again.load_state_dict({**again.state_dict(), "state": first.state_dict()["state"]})
    assert rates == [first.rate(step) for step in range(10)]
    assert stepped(again, weight) == first.rate(10)


def test_the_last_weights_are_kept_whatever_validation_says():
    network, examined = Slope(), []

    def validate(network):
        examined.append(network.weight.item())
        return -float(len(examined))  # ever worse

    config = CosineConfig(batch_rows=8, epochs=3, learning_rate=0.1, rows=64)
    events = list(train(network, rows(), distance, validate, config))
    assert sum(isinstance(event, EpochEnded) for event in events) == 3
    assert isinstance(events[-1], Finished)
    assert network.weight.item() == examined[-1] != examined[0]
