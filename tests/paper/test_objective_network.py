import numpy as np
import pytest
import torch

from harmonrank.paper.config import ObjectiveConfig
from harmonrank.paper.objective_network import ObjectiveNetwork
from harmonrank.paper.objective_scorer import ObjectiveScorer
from harmonrank.support.errors import DataError
from harmonrank.support.threads import limited_threads


def network_of(objectives, slots, seed=0, **size):
    """Return a network whose weights are all away from 0."""
    generator = torch.Generator().manual_seed(seed)
    network = ObjectiveNetwork(ObjectiveConfig(objectives, slots, **size), generator)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    network.prior.centre.fill_(-3.0)
    network.prior.spread.fill_(1.3)
    network.prior.slope.fill_(0.8)
    network.share.copy_(torch.rand(objectives, generator=generator))
    return network.eval()


def rows_of(objectives, slots, rows, seed=1):
    rng = np.random.default_rng(seed)
    scores = 1 / (1 + np.exp(3 - 3 * rng.normal(size=(rows, objectives))))
    codes = np.stack([rng.integers(0, n, rows) for n in slots], 1) if slots else np.empty((rows, 0))
    return scores.astype(np.float32), codes.astype(np.int32)


def defined(network, scores, codes):
    with torch.no_grad():
        z = network(torch.from_numpy(scores), torch.from_numpy(codes))
    return torch.sigmoid(z.double()).numpy()


@pytest.mark.parametrize(
    ("objectives", "slots", "size"),
    [(5, (25, 11, 4), {}), (1, (), {}), (3, (4,), {"width": 1, "buckets": 2}), (2, (3, 3), {})],
)
def test_the_scorer_is_the_network(objectives, slots, size):
    network = network_of(objectives, slots, **size)
    scores, codes = rows_of(objectives, slots, 1000)
    scores[0], scores[1], scores[2] = 0.0, 1.0, 0.5
    result = ObjectiveScorer.of(network)(scores, codes)
    np.testing.assert_allclose(result, defined(network, scores, codes), rtol=0, atol=1e-5)


def test_batch_equals_one_by_one_whatever_the_threads():
    scorer = ObjectiveScorer.of(network_of(3, (4, 2)))
    scores, codes = rows_of(3, (4, 2), 9000)
    whole = scorer(scores, codes)
    for row in (0, 63, 64, 4095, 8999):
        one = slice(row, row + 1)
        np.testing.assert_array_equal(scorer(scores[one], codes[one]), whole[one])
    with limited_threads(3):
        np.testing.assert_array_equal(scorer(scores, codes), whole)


def test_a_new_network_is_the_closed_form():
    network = ObjectiveNetwork(ObjectiveConfig(3, (4,)), torch.Generator().manual_seed(0))
    network.prior.slope.copy_(torch.tensor([0.5, 1.0, 2.0]))
    network.prior.intercept.copy_(torch.tensor([-1.0, 0.0, 1.0]))
    scores, codes = rows_of(3, (4,), 100)
    logits = np.log(scores.astype(np.float64) / (1 - scores.astype(np.float64)))
    expected = 1 / (1 + np.exp(-(logits * [0.5, 1.0, 2.0] + [-1.0, 0.0, 1.0])))
    np.testing.assert_allclose(defined(network, scores, codes), expected, atol=1e-5)


def test_each_output_is_learned_from_the_first_step():
    network = ObjectiveNetwork(ObjectiveConfig(3, (4,)), torch.Generator().manual_seed(0))
    scores, codes = rows_of(3, (4,), 100)
    z = network(torch.from_numpy(scores), torch.from_numpy(codes))
    z.square().sum().backward()
    for name, parameter in network.named_parameters():
        if name.rpartition(".")[2] in ("output", "offset", "slope") or name == "linear.bias":
            assert parameter.grad.abs().max() > 0, name


def test_embeddings_are_continuous_and_go_on_beyond_the_buckets():
    network = network_of(1, ())
    u = torch.linspace(-8, 8, 4001)[:, None]
    with torch.no_grad():
        x = network.scores(u.T)[0].T  # (rows, width)
    assert (x[1:] - x[:-1]).abs().max() < 0.05
    np.testing.assert_allclose(x[-1, 0] - x[-500, 0], u[-1, 0] - u[-500, 0], rtol=1e-4)


def test_attention_is_a_share_of_every_score():
    network = network_of(4, (3,))
    scores, codes = rows_of(4, (3,), 50)
    result = network.head_paths(torch.from_numpy(scores), torch.from_numpy(codes))
    for A in (result.A_r, result.A_p):
        np.testing.assert_allclose(A.sum(1).detach(), np.ones((4, 50)), rtol=1e-5)
    assert result.A_p.std(2).max() > 0


def test_a_code_that_the_network_does_not_have_is_refused():
    scorer = ObjectiveScorer.of(network_of(2, (3, 3)))
    scores, codes = rows_of(2, (3, 3), 10)
    codes[4, 1] = 3
    with pytest.raises(DataError, match="A context code is not one of the network's"):
        scorer(scores, codes)
    with pytest.raises(DataError, match=r"must be \(rows, 2\) and `codes` \(rows, 2\)"):
        scorer(scores[:, :1], codes)
