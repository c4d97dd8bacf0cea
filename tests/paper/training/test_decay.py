"""Decay is decoupled from the gradient, and leaves alone what only sets a scale."""

import numpy as np
import pytest
import torch

from harmonrank.paper import Network, NetworkConfig, TrainingConfig
from harmonrank.paper.training import Arrays, FusedLearner, LossValue, TorchLearner, decayed

CONFIG = NetworkConfig(objectives=3, context_slots=(4,), buckets=12)
FREE = {
    "relation_aware.value.weight",
    "relation_aware.context_value.weight",
    "relation_aware.output.weight",
    "gated.output.weight",
    "linear.weight",
}


def rows():
    rng = np.random.default_rng(0)
    arrays = rng.random((64, 3), np.float32), rng.integers(0, 4, (64, 1)).astype(np.int32)
    return Arrays(*map(torch.from_numpy, (*arrays, (rng.random((64, 3)) < 0.5).astype(np.uint8))))


def test_decay_acts_on_tables_and_on_what_is_inside_a_softmax_or_sigmoid():
    names = {name for name, _ in Network(CONFIG).named_parameters()}
    assert {n for n in names if not decayed(n) and not n.endswith(".bias")} == FREE
    assert not any(decayed(n) for n in names if n.endswith(".bias"))


@pytest.mark.parametrize("learner", [TorchLearner, FusedLearner])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_without_a_gradient_decay_shrinks_by_rate_times_decay(learner, optimizer):
    network = Network(CONFIG, torch.Generator().manual_seed(0))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    config = TrainingConfig(optimizer=optimizer, learning_rate=0.1, weight_decay=0.5)
    taker = learner(network, rows(), config)
    for _ in range(3):
        taker.step(np.arange(64), lambda fused, _: LossValue(0 * fused.sum()))
    for name, value in network.named_parameters():
        factor = 0.95**3 if decayed(name) else 1.0
        torch.testing.assert_close(value.detach(), factor * before[name], rtol=1e-5, atol=1e-7)
