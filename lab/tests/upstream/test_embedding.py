import numpy as np
import pytest
import torch

from harmonrank_lab.upstream.embedding import Embedding, Layout, Rows

WIDTH, OBJECTIVES = 3, 2


def sides():
    """Two sides of 2 and 1 fields, whose codes are rows of one table of 12."""
    users = np.array([[0, 3], [1, 3], [2, 4]], np.int32)
    items = np.array([[5], [6]], np.int32)
    return [users, items]


def embedding(shrinkage=0.0, rate=0.1):
    counts = np.full(12, 4.0, np.float32)
    layout = Layout.of(sides(), 2, counts)
    generator = torch.Generator().manual_seed(0)
    return Embedding(layout, WIDTH, shrinkage=shrinkage, rate=rate, generator=generator)


def rows(n=7, seed=0):
    rng = np.random.default_rng(seed)
    keys = np.stack([rng.integers(0, 3, n), rng.integers(0, 2, n)], axis=1).astype(np.int32)
    context = np.stack([rng.integers(7, 10, n), rng.integers(10, 12, n)], axis=1).astype(np.int32)
    return Rows(keys, context, np.zeros((n, OBJECTIVES), np.uint8))


def codes_of(batch):
    users, items = sides()
    return [users[batch.keys[:, 0]], items[batch.keys[:, 1]], batch.context]


def by_autograd(table, batch):
    """Pool a table by plain indexing."""
    parts = [table[torch.from_numpy(c).long()] for c in codes_of(batch)]
    return torch.cat([p.sum(1) for p in parts], dim=1)


def test_pooling_sums_the_fields_of_each_side():
    net, batch = embedding(), rows()
    torch.testing.assert_close(net(batch), by_autograd(net.table, batch))


def test_step_is_row_wise_adagrad_on_the_gradient_of_autograd():
    net, batch = embedding(shrinkage=2.0), rows()
    table = net.table.clone().requires_grad_()
    pooled = by_autograd(table, batch)
    slope = torch.randn(pooled.shape)
    (pooled * slope).sum().backward()
    hits = np.bincount(np.concatenate([c.ravel() for c in codes_of(batch)]), minlength=12)
    g = table.grad + torch.from_numpy(hits * 2.0 / 4).float()[:, None] * table.detach()
    size = g.square().mean(1, keepdim=True).sqrt() + 1e-8
    expected = table.detach() - torch.where(size > 1e-7, 0.1 * g / size, 0.0)
    net.step(batch, slope)
    torch.testing.assert_close(net.table, expected)


def test_untouched_rows_stay_and_are_forgotten_in_the_end():
    net, batch = embedding(), rows().take(slice(0, 1))
    before = net.table.clone()
    net.step(batch, torch.ones(1, 3 * WIDTH))
    touched = np.concatenate([c.ravel() for c in codes_of(batch)])
    others = np.setdiff1d(np.arange(12), touched)
    torch.testing.assert_close(net.table[others], before[others])
    net.forget_untouched()
    assert (net.table[others] == 0).all()
    assert (net.table[touched] != 0).any(dim=1).all()


def test_shrinkage_pulls_each_row_equally_however_often_it_comes():
    # One epoch: a row that comes in all 4 batches and one that comes in 1 of them.
    counts = np.array([4, 1], np.float32)
    layout = Layout.of([np.array([[0], [1]], np.int32)], 0, counts)
    net = Embedding(layout, 1, shrinkage=0.1, rate=10.0)
    net.squares.fill_(1e6)  # plain gradient steps of length 0.01
    net.table.fill_(1.0)
    for key in (0, 0, 0, 0, 1):
        batch = Rows(np.array([[key]], np.int32), np.zeros((1, 0), np.int32), np.zeros((1, 0)))
        net.step(batch, torch.zeros(1, 2))
    moved = 1 - net.table[:, 0]
    assert moved[0].item() == pytest.approx(moved[1].item(), rel=1e-2)
