import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harmonrank.paper import Network, NetworkConfig
from harmonrank.support import UsageError

ELIVE = NetworkConfig(objectives=5, context_slots=(25, 11, 9, 4))
SWITCHES = [
    {},
    {"self_attention": False},
    {"personalised": False},
    {"cross_attention": False},
    {"gate": False},
    {"linear": False},
    {"buckets": None},
    {"buckets": 100},
    {"buckets": 600},
]


class CountFlops(TorchDispatchMode):
    """Counts 2 per multiply-add, and 1 per element of a sum or product (scaling apart)."""

    def __init__(self):
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if name in ("mm", "bmm"):
            self.total += 2 * result.numel() * args[0].shape[-1]
        elif name == "addmm":
            self.total += 2 * result.numel() * args[1].shape[-1] + result.numel()
        elif (
            name in ("add", "mul")
            and result.is_floating_point()
            and isinstance(args[1], torch.Tensor)
        ):
            self.total += result.numel()
        return result


def rows(config, n=64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(n, config.objectives, generator=generator)
    context = [torch.randint(0, k, (n, 1), generator=generator) for k in config.context_slots]
    return scores, torch.cat(context, 1) if context else torch.zeros(n, 0, dtype=torch.long)


def test_paper_size_has_2426_parameters_outside_the_tables():
    network = Network(ELIVE)
    counted = sum(p.numel() for name, p in network.named_parameters() if not name.endswith("table"))
    assert counted == 2426


def test_paper_size_takes_272_8_million_flops_per_10240_rows():
    network = Network(ELIVE)
    scores, context = rows(ELIVE, 10_240)
    # Tables are read, not computed: their look-ups (score buckets) are left out of the count.
    x, P = network.scores(scores), network.context(context)
    with torch.no_grad(), CountFlops() as count:
        network.relation_aware(x, P)[0] + network.gated(x) + network.linear(x.flatten(1)).squeeze(1)
    assert count.total == 272_793_600


@pytest.mark.parametrize("switch", SWITCHES, ids=str)
def test_every_ablation_gives_one_finite_score_per_row_and_a_gradient(switch):
    config = NetworkConfig(objectives=3, context_slots=(5, 4), **switch)
    network = Network(config, torch.Generator().manual_seed(1))
    fused = network(*rows(config))
    assert fused.shape == (64,)
    assert fused.isfinite().all()
    fused.square().sum().backward()
    for name, parameter in network.named_parameters():
        if parameter.numel():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all()


def test_network_equals_the_formulas_written_out_row_by_row():
    config = NetworkConfig(objectives=3, context_slots=(5, 4), buckets=10)
    network = Network(config, torch.Generator().manual_seed(3)).double()
    scores, context = rows(config, 7)
    fused = network(scores, context)
    part = network.relation_aware
    for i in range(7):
        buckets = [min(int(s * 10), 9) for s in scores[i].tolist()]
        x = torch.stack([network.scores.table[m * 10 + b] for m, b in enumerate(buckets)])
        P = torch.stack(
            [network.context.table[context[i, 0], 0], network.context.table[5 + context[i, 1], 0]]
        )
        Q, K, V = x @ part.query.weight.T, x @ part.key.weight.T, x @ part.value.weight.T
        x_r = torch.softmax(Q @ K.T / 32**0.5, 1) @ V
        Q_p = P @ part.context_query.weight.T
        K_p, V_p = x_r @ part.context_key.weight.T, x_r @ part.context_value.weight.T
        s1 = (
            part.output.weight[0] @ (torch.softmax(Q_p @ K_p.T / 32**0.5, 0) @ V_p)
            + part.output.bias
        )
        g = torch.sigmoid(x @ network.gated.gate.weight[0] + network.gated.gate.bias)
        s2 = network.gated.output.weight[0] @ (g[:, None] * x).flatten() + network.gated.output.bias
        s3 = network.linear.weight[0] @ x.flatten() + network.linear.bias
        torch.testing.assert_close(fused[i], (s1 + s2 + s3)[0])


def test_scores_of_zero_and_one_fall_into_the_first_and_last_bucket():
    network = Network(NetworkConfig(objectives=1, buckets=4))
    embedded = network.scores(torch.tensor([[0.0], [0.25], [0.999], [1.0]]))
    torch.testing.assert_close(embedded[:, 0], network.scores.table[[0, 1, 3, 3]])


def test_a_seed_decides_the_first_weights():
    def weights(seed):
        network = Network(ELIVE, torch.Generator().manual_seed(seed))
        return torch.cat([p.flatten() for p in network.parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


def test_network_without_context_columns_works():
    config = NetworkConfig(objectives=2)
    assert Network(config)(*rows(config)).shape == (64,)


def test_network_of_no_rows_gives_no_scores():
    assert Network(ELIVE)(torch.rand(0, 5), torch.zeros(0, 4, dtype=torch.long)).shape == (0,)


def test_sizes_below_one_are_refused():
    with pytest.raises(UsageError, match="'width' of NetworkConfig must be a whole number from 1"):
        NetworkConfig(objectives=2, width=0)
