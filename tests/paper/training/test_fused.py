from dataclasses import replace

import numpy as np
import pytest
import torch

from harmonrank.paper import Network, NetworkConfig, TrainingConfig
from harmonrank.paper.fused import _forward
from harmonrank.paper.losses import bce_loss, rank_auc_loss
from harmonrank.paper.training import (
    Arrays,
    Finished,
    FusedLearner,
    LossValue,
    TorchLearner,
    torch_threads,
    train,
)
from harmonrank.paper.training import learner as learner_module
from harmonrank.paper.training.learner import learner_for
from harmonrank.support import EpochEnded, Resumed, limited_threads

SLOTS = (5, 3)
CONFIG = NetworkConfig(objectives=3, context_slots=SLOTS, buckets=20)
TRAINING = TrainingConfig(batch_rows=512, epochs=3)


@pytest.fixture(autouse=True)
def _one_thread():
    """Spare the tests the waiting of threads for each other on a busy machine."""
    with limited_threads(1), torch_threads(1):
        yield


@pytest.fixture(params=["torch", "fused"])
def path(request, monkeypatch):
    """Send every fit down one path, whatever its size."""
    monkeypatch.setattr(learner_module, "_SMALL_FIT", 0 if request.param == "fused" else 10**12)
    return request.param


def rows_of(n=3000, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    scores = rng.random((n, 3), dtype=np.float32)
    context = np.stack([rng.integers(0, k, n) for k in SLOTS], axis=1).astype(np.int32)
    labels = (rng.random((n, 3)) < scores * 0.5).astype(np.uint8)
    weight = torch.from_numpy(rng.random(n)) if weighted else None
    return Arrays(*(torch.from_numpy(a) for a in (scores, context, labels)), weight)


def rank_loss(fused, batch):
    parts = rank_auc_loss(fused, batch.labels, sample_weight=batch.sample_weight, return_parts=True)
    return LossValue(parts.loss, parts.gradient_share)


def new_network(seed=0, config=CONFIG):
    return Network(config, torch.Generator().manual_seed(seed), scores=rows_of(seed=5).scores)


def validator(rows):
    @torch.no_grad()
    def validate(network):
        return -float(rank_loss(network(rows.scores, rows.context), rows).loss)

    return validate


def weights_of(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def run(network, rows, config=TRAINING, loss=rank_loss, **options):
    return list(train(network, rows, loss, validator(rows_of(seed=1)), config, **options))


def test_a_small_fit_is_left_to_torch_and_a_large_one_to_the_kernels():
    rows = rows_of()
    assert isinstance(learner_for(new_network(), rows, TRAINING, rows_seen=1000), TorchLearner)
    assert isinstance(learner_for(new_network(), rows, TRAINING, rows_seen=10**7), FusedLearner)


def test_a_network_of_too_many_codes_is_trained_by_torch_and_says_so_once(caplog):
    _forward._say.cache_clear()
    network = new_network(config=replace(CONFIG, buckets=70_000))
    with caplog.at_level("INFO", logger="harmonrank"):
        for _ in range(2):
            chosen = learner_for(network, rows_of(), TRAINING, rows_seen=10**7)
            assert isinstance(chosen, TorchLearner)
    assert [record.message for record in caplog.records] == [
        "With 65,536 buckets or context values a network is trained by PyTorch."
    ]


BUCKETS = [
    {},
    {"buckets": None},
    {"scale": "quantile"},
    *({"scale": scale, "interpolate": True} for scale in ("raw", "range", "logit", "quantile")),
]


@pytest.mark.parametrize("buckets", BUCKETS, ids=str)
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("weighted", [False, True])
def test_both_learners_take_the_same_steps(optimizer, weighted, buckets):
    config = TrainingConfig(optimizer=optimizer, learning_rate=0.01, weight_decay=0.01)
    rows, index = rows_of(weighted=weighted), np.arange(0, 3000, 2)
    networks = [new_network(config=replace(CONFIG, **buckets)) for _ in range(2)]
    learners = [
        kind(network, rows, config)
        for kind, network in zip((TorchLearner, FusedLearner), networks, strict=True)
    ]
    for _ in range(3):
        # Pointwise, as a last digit cannot move a block boundary of this loss.
        values = [
            learner.step(index, lambda s, b: LossValue(bce_loss(s, b.labels)))[0]
            for learner in learners
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-6)
    # Adam divides by the gradient's size, so where that is nothing its sign is rounding.
    for name, value in weights_of(networks[0]).items():
        torch.testing.assert_close(value, weights_of(networks[1])[name], rtol=1e-3, atol=1e-4)


def test_a_fused_learner_leaves_the_weights_as_they_were():
    network, other = new_network(), new_network()
    FusedLearner(network, rows_of(), TRAINING)
    for name, value in weights_of(other).items():
        assert torch.equal(value, weights_of(network)[name])


def test_the_same_seed_gives_the_same_weights(path):
    first, second = new_network(), new_network()
    run(first, rows_of())
    run(second, rows_of())
    for name, value in weights_of(first).items():
        assert torch.equal(value, weights_of(second)[name])


def test_training_lowers_the_loss(path):
    events = run(new_network(), rows_of())
    losses = [event.loss for event in events if hasattr(event, "loss")]
    assert losses[-1] < losses[0]
    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize("stop_after", [1, 4, 6, 8, 15])
def test_a_stopped_run_goes_on_to_the_same_weights_bit_for_bit(path, stop_after, tmp_path):
    config = replace(TRAINING, checkpoint_seconds=0.0)
    whole = new_network()
    expected = run(whole, rows_of(), config)
    file = tmp_path / "checkpoint"
    options = {"checkpoint": file, "fingerprint": "x"}
    stopped = train(
        new_network(), rows_of(), rank_loss, validator(rows_of(seed=1)), config, **options
    )
    for _, _event in zip(range(stop_after), stopped, strict=False):
        pass
    stopped.close()
    resumed = new_network(seed=9)
    events = run(resumed, rows_of(), config, **options)
    assert isinstance(events[0], Resumed)
    assert events[-1] == expected[-1]
    for name, value in weights_of(whole).items():
        assert torch.equal(value, weights_of(resumed)[name])


def test_a_checkpoint_of_the_other_path_is_refused(tmp_path, monkeypatch):
    from harmonrank.support import ModelFileError

    file = tmp_path / "checkpoint"
    monkeypatch.setattr(learner_module, "_SMALL_FIT", 0)
    run(new_network(), rows_of(), checkpoint=file)
    monkeypatch.setattr(learner_module, "_SMALL_FIT", 10**12)
    with pytest.raises(ModelFileError, match="delete it to start again"):
        run(new_network(), rows_of(), checkpoint=file)


def test_training_stops_when_validation_gets_no_better(path):
    config = replace(TRAINING, epochs=50, patience=2)
    events = list(train(new_network(), rows_of(), rank_loss, lambda _: 1.0, config))
    epochs = [event for event in events if isinstance(event, EpochEnded)]
    history = tuple((e.loss, e.valid_auc_sum, e.gradient_share) for e in epochs)
    assert len(history) == 3
    assert events[-1] == Finished(0, 1.0, "patience", history)


def test_the_network_ends_with_the_weights_of_its_best_epoch(path):
    values, seen = iter([1.0, 3.0, 2.0]), []

    def validate(network):
        seen.append(weights_of(network))
        return next(values)

    network = new_network()
    list(train(network, rows_of(), rank_loss, validate, TRAINING))
    for name, value in weights_of(network).items():
        assert torch.equal(value, seen[1][name])


def test_without_early_stopping_all_epochs_are_made_and_the_last_weights_kept(path):
    seen = []

    def validate(network):
        seen.append(weights_of(network))
        return -float(len(seen))

    network, config = new_network(), replace(TRAINING, patience=1, early_stopping=False)
    *_, finished = train(network, rows_of(), rank_loss, validate, config)
    assert len(seen) == len(finished.history) == 3
    for name, value in weights_of(network).items():
        assert torch.equal(value, seen[-1][name])


def test_a_loss_without_a_gradient_changes_nothing(path):
    network = new_network()
    before = weights_of(network)
    run(network, rows_of(), loss=lambda s, b: LossValue(torch.tensor(0.5)))
    for name, value in weights_of(network).items():
        assert torch.equal(value, before[name])


def test_torch_keeps_its_threads():
    before = torch.get_num_threads()
    learner = FusedLearner(new_network(), rows_of(), TRAINING)
    learner.step(np.arange(100), rank_loss)
    assert torch.get_num_threads() == before
