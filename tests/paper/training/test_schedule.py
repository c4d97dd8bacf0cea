"""The rate of a step depends on its number alone, also after a kill."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from harmonrank.paper import TrainingConfig
from harmonrank.paper.training import Arrays, LossValue, train
from harmonrank.support import BatchEnded, UsageError

COSINE = TrainingConfig(
    learning_rate=0.1, schedule="cosine", warm_up=4, batch_rows=8, epochs=3, early_stopping=False
)


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


def trained(config, **options):
    network = Slope()
    list(train(network, rows(), distance, lambda _: 0.0, config, **options))
    return network.weight.item()


def test_the_rate_rises_then_falls_to_nothing():
    config = replace(COSINE, learning_rate=0.5, warm_up=10)
    rates = [config.rate(step, 100) for step in range(101)]
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    np.testing.assert_allclose([max(rates), rates[50], rates[100]], [0.49, 0.25, 0.0], atol=0.01)


def test_a_constant_rate_is_constant():
    config = replace(COSINE, schedule="constant")
    assert {config.rate(step, 100) for step in range(101)} == {0.1}


def test_few_steps_warm_up_over_a_tenth_of_them():
    config = replace(COSINE, warm_up=50)
    assert config.rate(1, 20) == pytest.approx(0.1 * 0.5 * (1 + np.cos(np.pi / 20)))


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_the_schedule_is_what_the_steps_use(optimizer):
    config = replace(COSINE, optimizer=optimizer)
    assert trained(config) != trained(replace(config, schedule="constant"))
    # SGD, by hand.
    if optimizer == "sgd":
        flat = replace(config, epochs=1, batch_rows=64)
        x = rows().scores[:, 0].numpy()
        assert trained(flat) == pytest.approx(flat.rate(0, 1) * 4 * float((x * x).mean()))


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_killed_run_goes_on_at_the_rate_it_had(tmp_path, optimizer):
    config = replace(COSINE, optimizer=optimizer, checkpoint_seconds=0.0)
    whole, file, network = trained(config), tmp_path / "checkpoint", Slope()
    for event in train(network, rows(), distance, lambda _: 0.0, config, checkpoint=file):
        if isinstance(event, BatchEnded) and (event.epoch, event.step) == (1, 3):
            break
    assert trained(config, checkpoint=file) == whole


def test_without_early_stopping_the_last_weights_are_kept_whatever_validation_says():
    network, examined = Slope(), []

    def validate(network):
        examined.append(network.weight.item())
        return -float(len(examined))  # ever worse

    list(train(network, rows(), distance, validate, COSINE))
    assert len(examined) == 3
    assert network.weight.item() == examined[-1] != examined[0]


def test_an_unknown_schedule_is_refused():
    with pytest.raises(UsageError, match=r"'constant' or 'cosine'. Got 'step'"):
        TrainingConfig(schedule="step")
