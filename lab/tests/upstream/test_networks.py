import numpy as np
import pytest
import torch

from harmonrank.support import UsageError
from harmonrank_lab.upstream.experts import GroupedLinear, Thinned, mix
from harmonrank_lab.upstream.network import ESMM, NETWORKS, PLE, MMoE, PredictorConfig, chained

TOPS = {"mmoe": MMoE, "ple": PLE, "esmm": ESMM}
SIZES = PredictorConfig(experts=2, expert_width=8, tower_width=4, dropout=0.0)


def generator():
    return torch.Generator().manual_seed(0)


def test_mix_and_its_gradient_are_those_of_softmax_and_products():
    gates = torch.randn(5, 3, 4, generator=generator(), requires_grad=True)
    experts = torch.randn(5, 4, 19, generator=generator(), requires_grad=True)
    slope = torch.randn(3, 5, 19, generator=generator())
    plain = torch.bmm(torch.softmax(gates, dim=2), experts).transpose(0, 1)
    expected = torch.autograd.grad((plain * slope).sum(), [gates, experts])
    ours = mix(gates, experts)
    gradients = torch.autograd.grad((ours * slope).sum(), [gates, experts])
    torch.testing.assert_close(ours, plain)
    torch.testing.assert_close(gradients, expected)


def test_thinning_drops_the_share_it_says_and_keeps_the_mean():
    torch.manual_seed(0)
    x = torch.ones(1000, 64, requires_grad=True)
    kept = Thinned(0.25).train()(x)
    assert (kept == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert kept.mean().item() == pytest.approx(1.0, abs=0.01)
    kept.sum().backward()
    torch.testing.assert_close(x.grad, kept.detach())


def test_thinning_is_relu_outside_of_training():
    x = torch.tensor([-1.0, 0.0, 2.0])
    torch.testing.assert_close(Thinned(0.5).eval()(x), torch.relu(x))


def test_grouped_linear_is_one_map_per_group():
    layer = GroupedLinear(2, 3, 4, generator())
    x = torch.randn(2, 5, 3)
    for g in range(2):
        torch.testing.assert_close(layer(x)[g], x[g] @ layer.weight[g] + layer.bias[g])


@pytest.mark.parametrize("name", NETWORKS)
def test_rows_do_not_see_each_other(name):
    top = TOPS[name](6, 3, SIZES, generator()).eval()
    top.towers.last.data.normal_(generator=generator())
    x = torch.randn(10, 6)
    one_by_one = torch.cat([top(x[i : i + 1]) for i in range(10)])
    torch.testing.assert_close(top(x), one_by_one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_weight_gets_a_gradient(name):
    top = TOPS[name](6, 3, SIZES, generator()).train()
    top.towers.last.data.normal_(generator=generator())
    top(torch.randn(50, 6)).square().sum().backward()
    for part, parameter in top.named_parameters():
        assert parameter.grad is not None, part
        assert parameter.grad.abs().sum() > 0, part


def test_chained_is_the_product_of_probabilities():
    factors = torch.randn(100, 4, generator=generator(), dtype=torch.float64) * 3
    p = torch.sigmoid(factors)
    expected = torch.cat([p[:, :1], p[:, :1] * p[:, 1:]], dim=1)
    torch.testing.assert_close(torch.sigmoid(chained(factors)), expected, rtol=1e-5, atol=1e-6)


def test_chained_stays_finite_at_the_ends():
    factors = torch.tensor([[100.0, 100.0], [-100.0, -100.0], [100.0, -100.0]], requires_grad=True)
    logits = chained(factors)
    logits.sum().backward()
    assert torch.isfinite(logits).all()
    assert torch.isfinite(factors.grad).all()


def test_an_unknown_network_is_refused():
    with pytest.raises(UsageError, match="'network' of predict must be 'mmoe' or 'ple' or 'esmm'"):
        PredictorConfig(network="mmoee")


def test_bad_numbers_are_refused():
    with pytest.raises(UsageError, match="'dropout' of predict must be a number from 0 below 1"):
        PredictorConfig(dropout=1.0)
    with pytest.raises(UsageError, match="'epochs' of predict must be a whole number from 1"):
        PredictorConfig(epochs=0)


def test_prevalence_is_where_the_logits_begin():
    from harmonrank_lab.upstream.embedding import Layout, Rows
    from harmonrank_lab.upstream.network import PredictorNetwork

    layout = Layout.of([np.array([[0]], np.int32)], 0, np.ones(1, np.float32))
    rows = Rows(np.zeros((1, 1), np.int32), np.zeros((1, 0), np.int32), np.zeros((1, 2), np.uint8))
    for name in NETWORKS:
        config = PredictorConfig(network=name)
        network = PredictorNetwork(layout, np.array([0.3, 0.01]), config, generator())
        np.testing.assert_allclose(network.score(rows)[0], [0.3, 0.01], rtol=1e-4)


@pytest.mark.parametrize("name", ["mmoe", "esmm", "ple"])
def test_objectives_begin_as_one_function(name):
    top = TOPS[name](6, 3, SIZES, generator()).eval()
    top.towers.last.data.normal_(generator=generator())
    logits = top(torch.randn(10, 6))
    assert logits.std() > 0
    torch.testing.assert_close(logits, logits[:, :1].expand(-1, 3))
