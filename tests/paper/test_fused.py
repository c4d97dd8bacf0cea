from dataclasses import replace

import numpy as np
import pytest
import torch

from harmonrank.paper import Network, NetworkConfig
from harmonrank.paper.fused import Scorer, TrainingStep, covers
from harmonrank.paper.training import torch_threads
from harmonrank.support import UsageError, limited_threads

SLOTS = (6, 4)
BASE = NetworkConfig(objectives=4, context_slots=SLOTS)
SWITCHES = [
    {},
    {"self_attention": False},
    {"personalised": False},
    {"cross_attention": False},
    {"gate": False},
    {"linear": False},
    {"gate": False, "linear": False},
    {"self_attention": False, "cross_attention": False},
    {"personalised": False, "cross_attention": False},
    {"self_attention": False, "personalised": False},
    {"context_slots": ()},
    {"context_slots": (), "cross_attention": False},
    {"objectives": 1},
    {"buckets": 100},
    {"buckets": 600},
    {"buckets": None},
    {"buckets": None, "self_attention": False, "gate": False},
    {"buckets": 16, "interpolate": True, "scale": "logit"},
    {"buckets": 2, "interpolate": True},
    {"buckets": 9, "interpolate": True, "scale": "quantile", "cross_attention": False},
    {"buckets": 16, "interpolate": True, "scale": "logit", "gate": False},
    {"buckets": 16, "interpolate": True, "scale": "logit", "linear": False},
    {"buckets": 16, "interpolate": True, "scale": "logit", "context_slots": ()},
]
SCALES = [
    {"scale": scale, "buckets": buckets, "interpolate": interpolate}
    for scale in ("raw", "range", "logit", "quantile")
    for buckets in (2, 30, 300)
    for interpolate in (False, True)
]
SIZES = [{"width": 2}, {"width": 3}, {"width": 8}, {"width": 1, "key_width": 5}]
CONFIGS = [
    pytest.param(replace(BASE, **switch, **size), id=f"{switch}{size}")
    for switch in SWITCHES
    for size in SIZES
] + [pytest.param(replace(BASE, **scale), id=str(scale)) for scale in SCALES]


@pytest.fixture(autouse=True)
def _one_thread():
    """Spare the tests the waiting of threads for each other on a busy machine."""
    with limited_threads(1), torch_threads(1):
        yield


def network_of(config, seed=0):
    network = Network(
        config, torch.Generator().manual_seed(seed), scores=rows_of(config, seed=9)[0]
    )
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim < 2:  # biases begin at zero, which would hide their part
                parameter.normal_(generator=generator)
    return network


def rows_of(config, n=1000, seed=0):
    rng = np.random.default_rng(seed)
    # Most of the mass in few buckets, and both ends of the range.
    scores = rng.beta(0.3, 2, (n, config.objectives)).astype(np.float32)
    scores[:2] = [[0.0], [1.0]]
    context = np.stack([rng.integers(0, k, n) for k in (*config.context_slots, 1)], axis=1)
    return scores, context[:, :-1].astype(np.int32)


def gradients(network, rows, slope, dtype):
    """Return scores and gradients by PyTorch, computed in one precision."""
    twin = Network(network.config, knots=network.scores.knots.numpy())
    twin.load_state_dict(network.state_dict())
    twin = twin.to(dtype)
    fused = twin(*(torch.from_numpy(array) for array in rows))
    fused.backward(torch.from_numpy(slope).to(dtype))
    result = {name: value.grad for name, value in twin.named_parameters() if value.numel()}
    return fused.detach().double().numpy(), {n: g.double().numpy() for n, g in result.items()}


@pytest.mark.parametrize("config", CONFIGS)
def test_gradients_are_as_exact_as_those_of_float32_autograd(config):
    network, rows = network_of(config), rows_of(config)
    step, rng = TrainingStep(network, *rows), np.random.default_rng(1)
    ours, torchs = {}, {}
    # Over several slopes, as the error of one sum can vanish by chance.
    for _ in range(4):
        slope = rng.standard_normal(len(rows[0])).astype(np.float32)
        step.forward(np.arange(len(slope)))
        step.backward(slope)
        _, exact = gradients(network, rows, slope, torch.float64)
        _, single = gradients(network, rows, slope, torch.float32)
        for name, value in exact.items():
            ours.setdefault(name, []).append(step.gradient[name] - value)
            torchs.setdefault(name, []).append(single[name] - value)
    for name, errors in ours.items():
        assert np.linalg.norm(errors) <= 3 * np.linalg.norm(torchs[name]), name


@pytest.mark.parametrize("config", CONFIGS)
def test_scores_equal_those_of_the_network(config):
    network, rows = network_of(config), rows_of(config)
    exact, _ = gradients(network, rows, np.zeros(len(rows[0]), np.float32), torch.float64)
    assert np.abs(Scorer.of(network)(*rows) - exact).max() < 1e-5 * exact.std()


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_training_and_scoring_fuse_alike(scale):
    config = replace(BASE, **scale)
    network, rows = network_of(config), rows_of(config)
    fused = TrainingStep(network, *rows).forward(np.arange(1000))
    np.testing.assert_array_equal(fused, Scorer.of(network)(*rows).astype(np.float32))


def test_a_batch_equals_one_by_one():
    scorer, (scores, context) = Scorer.of(network_of(BASE)), rows_of(BASE, n=300)
    alone = [scorer(scores[i : i + 1], context[i : i + 1])[0] for i in range(300)]
    np.testing.assert_array_equal(scorer(scores, context), alone)


@pytest.mark.parametrize("n", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_many_rows_have_the_order_that_the_network_gives_them(n):
    network = network_of(BASE)
    scores, context = rows_of(BASE, n)
    with torch.no_grad():
        slow = torch.cat(
            [
                network(torch.from_numpy(s), torch.from_numpy(c))
                for s, c in zip(
                    np.array_split(scores, 20), np.array_split(context, 20), strict=True
                )
            ]
        ).numpy()
    fast = Scorer.of(network)(scores, context)
    in_order = slow[np.argsort(fast)]
    # Where the two disagree, the scores differ by no more than their rounding.
    assert (np.maximum.accumulate(in_order) - in_order).max() < 1e-5 * slow.std()


def test_a_lopsided_attention_neither_overflows_nor_vanishes():
    network = network_of(BASE)
    with torch.no_grad():
        network.scores.table *= 60
    rows = rows_of(BASE)
    slope = np.ones(1000, np.float32)
    step = TrainingStep(network, *rows)
    fused = step.forward(np.arange(1000))
    step.backward(slope)
    exact, _ = gradients(network, rows, slope, torch.float64)
    assert np.isfinite(step.gradient.vector).all()
    np.testing.assert_allclose(fused, exact, atol=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_no_more_than_the_last_digits(threads):
    network, rows = network_of(BASE), rows_of(BASE, n=5000)
    slope = np.random.default_rng(1).standard_normal(5000).astype(np.float32)
    alone, parallel = TrainingStep(network, *rows), TrainingStep(network, *rows, threads=threads)
    for step in (alone, parallel):
        fused = step.forward(np.arange(5000))
        step.backward(slope)
    np.testing.assert_array_equal(fused, alone.forward(np.arange(5000)))
    np.testing.assert_allclose(
        parallel.gradient.vector, alone.gradient.vector, rtol=1e-9, atol=1e-12
    )


def test_repeating_a_step_repeats_its_gradient():
    network, rows = network_of(BASE), rows_of(BASE, n=5000)
    step, result = TrainingStep(network, *rows, threads=2), []
    for _ in range(3):
        step.forward(np.arange(5000))
        step.backward(np.ones(5000, np.float32))
        result.append(step.gradient.vector.copy())
    np.testing.assert_array_equal(result[0], result[1])
    np.testing.assert_array_equal(result[0], result[2])


def test_a_batch_is_the_rows_of_its_index():
    network, (scores, context) = network_of(BASE), rows_of(BASE)
    index = np.random.default_rng(2).permutation(1000)[:333]
    fused = TrainingStep(network, scores, context).forward(index)
    np.testing.assert_array_equal(
        fused, TrainingStep(network, scores, context).forward(np.arange(1000))[index]
    )


def test_an_empty_table_has_no_scores():
    scores, context = rows_of(BASE)
    assert Scorer.of(network_of(BASE))(scores[:0], context[:0]).shape == (0,)


@pytest.fixture
def half_strange():
    """Return scores and context of two parts; half of the codes, the other thread's, are bad."""
    scores, context = rows_of(BASE, n=8192)
    context[4096:, 0] = 99
    return scores, context


def test_an_unknown_code_is_refused_each_time_on_two_threads(half_strange):
    scorer, accepted = Scorer.of(network_of(BASE)), 0
    with limited_threads(2):
        for _ in range(3000):
            try:
                scorer(*half_strange)
                accepted += 1
            except UsageError:
                pass
    assert accepted == 0


@pytest.mark.parametrize("code", [-1, 6])
def test_an_unknown_code_is_refused(code):
    scores, context = rows_of(BASE)
    context[3, 0] = code
    with pytest.raises(UsageError, match="code that training did not have; use 0"):
        Scorer.of(network_of(BASE))(scores, context)
    with pytest.raises(UsageError, match="code that training did not have; use 0"):
        TrainingStep(network_of(BASE), scores, context)


def test_wrong_shapes_are_refused():
    scores, context = rows_of(BASE)
    scorer = Scorer.of(network_of(BASE))
    with pytest.raises(UsageError, match=r"`scores` must be \(rows, 4\). Got \(1000, 3\)"):
        scorer(scores[:, :3], context)
    with pytest.raises(UsageError, match=r"`context` must be \(1000, 2\). Got \(999, 2\)"):
        scorer(scores, context[1:])


def test_what_the_kernels_cover():
    assert all(covers(replace(BASE, **switch)) for switch in SWITCHES)
    assert not covers(replace(BASE, buckets=70_000))
    assert not covers(replace(BASE, context_slots=(70_000,)))
