"""N workers with b rows each take the step of one worker with N·b rows."""

import numpy as np
import pytest
import torch

from harmonrank.engine import LocalEngine
from harmonrank.paper import Network, NetworkConfig, TrainingConfig
from harmonrank.paper.losses import rank_auc_loss, rank_auc_slope
from harmonrank.paper.training.arrays import Arrays
from harmonrank.paper.training.learner import FusedLearner, LossSlope, LossValue, TorchLearner
from harmonrank.paper.training.parallel import ParallelLearner

M, ROWS = 3, 512


class FourWorkers(LocalEngine):
    """Four shares of the rows, all in this process."""

    name = "four"
    workers = 4


def rows_and_network(buckets):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(ROWS, M))
    labels = (rng.random((ROWS, M)) < 1 / (1 + np.exp(1 - z))).astype(np.uint8)
    scores = (1 / (1 + np.exp(2 - z))).astype(np.float32)
    context = rng.integers(0, 4, size=(ROWS, 2)).astype(np.int32)
    rows = Arrays(*(torch.from_numpy(a) for a in (scores, context, labels)))
    config = NetworkConfig(objectives=M, context_slots=(4, 4), buckets=buckets)
    return rows, lambda: Network(config, torch.Generator().manual_seed(1), scores=scores)


def loss(fused, batch):
    return LossValue(rank_auc_loss(fused, batch.patterns))


def slope(fused, batch):
    return LossSlope(*rank_auc_slope(fused, batch.patterns, np.ones(M)))


def batches():
    rng = np.random.default_rng(5)
    return [np.sort(rng.permutation(ROWS)[:256]) for _ in range(6)]


@pytest.mark.parametrize("engine", [LocalEngine(), FourWorkers()], ids=["one", "four"])
@pytest.mark.parametrize("kernels", [True, False])
def test_workers_take_the_steps_of_one_learner(engine, kernels, monkeypatch):
    if not kernels:
        monkeypatch.setattr("harmonrank.paper.training.parallel.covers", lambda config: False)
    rows, make = rows_and_network(8)
    config = TrainingConfig(optimizer="sgd", learning_rate=0.5, weight_decay=0.01)
    one, many = make(), make()
    alone = FusedLearner(one, rows, config, slope) if kernels else TorchLearner(one, rows, config)
    parallel = ParallelLearner(many, rows, config, engine, slope if kernels else None)
    for index in batches():
        a, b = alone.step(index, loss), parallel.step(index, loss)
        assert b.loss == pytest.approx(a.loss, rel=1e-5)
        assert b.gradient_share == a.gradient_share
    alone.publish()
    parallel.publish()
    for (name, a), b in zip(one.named_parameters(), many.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6, msg=name)
    first = make()
    assert any(
        (a - b).abs().max() > 1e-3
        for a, b in zip(one.parameters(), first.parameters(), strict=True)
    )


def test_ranks_of_each_worker_alone_would_take_another_step():
    rows, make = rows_and_network(8)
    network = make()
    index = torch.arange(256)
    with torch.no_grad():
        fused = network(rows.scores[index], rows.context[index]).numpy()
    whole = rank_auc_slope(fused, rows.batch(index).patterns, np.ones(M)).slope
    halves = [
        rank_auc_slope(fused[part], rows.batch(index[part]).patterns, np.ones(M)).slope
        for part in (slice(0, 128), slice(128, 256))
    ]
    alone = np.concatenate(halves) / 2
    # The gradients point apart by far more than rounding: ranks among 128 are not ranks among 256.
    assert np.abs(whole - alone).max() > 0.05 * np.abs(whole).max()


def test_a_share_that_was_lost_between_the_passes_begins_the_step_again():
    from harmonrank.paper.training.parallel import _Share

    rows, make = rows_and_network(8)
    network, given = make(), (1, rows.scores.numpy(), rows.context.numpy())
    index, slopes = np.arange(100), np.linspace(-1, 1, 100).astype(np.float32)
    kept, lost = _Share(network), _Share(network)
    weights = kept._vector.read(network)
    kept.forward(*given, 1, weights, index)
    np.testing.assert_array_equal(
        kept.backward(*given, 1, weights, index, slopes),
        lost.backward(*given, 1, weights, index, slopes),
    )


@pytest.mark.parametrize("kernels", [True, False])
def test_workers_take_their_steps_on_the_rows_that_are_in_use(kernels, monkeypatch):
    """A buffer that is filled again has other rows, and in the end fewer."""
    if not kernels:
        monkeypatch.setattr("harmonrank.paper.training.parallel.covers", lambda config: False)
    rows, make = rows_and_network(8)
    config = TrainingConfig(optimizer="sgd", learning_rate=0.5)
    one, many = make(), make()
    alone, parallel = (
        TorchLearner(one, rows, config),
        ParallelLearner(many, rows, config, FourWorkers()),
    )
    for first, last in ((0, 300), (300, 512), (100, 200)):
        chosen = torch.arange(first, last)
        some = Arrays(rows.scores[chosen], rows.context[chosen], rows.labels[chosen].byte())
        for learner in (alone, parallel):
            learner.use(some)
            for index in (np.arange(0, 80), np.arange(40, 100)):
                learner.step(index, loss)
    parallel.publish()
    for (name, a), b in zip(one.named_parameters(), many.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6, msg=name)


def test_what_a_loss_asks_of_the_weights_counts_once():
    """The ridge of `harmonrank-network`, say: it is of no row, so no worker finds its gradient."""
    rows, _ = rows_and_network(8)
    config, found = TrainingConfig(optimizer="sgd", learning_rate=0.5), []
    for kind in ("alone", "parallel"):
        torch.manual_seed(2)
        network = OneLayer()
        learner = (
            TorchLearner(network, rows, config)
            if kind == "alone"
            else ParallelLearner(network, rows, config, FourWorkers())
        )

        def shrunk(fused, batch, network=network):
            ridge = 0.1 * (network.layer.weight**2).sum()
            return LossValue(rank_auc_loss(fused, batch.patterns) + ridge)

        losses = [learner.step(index, shrunk).loss for index in batches()]
        learner.publish()
        found.append((losses, network.layer.weight))
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-5)
    torch.testing.assert_close(found[1][1], found[0][1], rtol=1e-4, atol=1e-6)


class OneLayer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(M, 1)

    def forward(self, scores, _context):
        return self.layer(scores)[:, 0]
