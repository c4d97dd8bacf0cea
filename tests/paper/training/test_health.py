"""Health tells which paths of a network do something."""

import logging

import numpy as np
import pytest
import torch

from check_method import SCHEMA, planted
from harmonrank.data import read_log
from harmonrank.fusion import load, method_class
from harmonrank.paper import Network, NetworkConfig
from harmonrank.paper.training import Arrays, health_of
from harmonrank.worlds import as_frame, world, world_schema

CONFIG = NetworkConfig(objectives=4, context_slots=(6, 3), buckets=16)


def rows(n=3000):
    rng = np.random.default_rng(0)
    context = np.stack([rng.integers(0, k, n) for k in (6, 3)], axis=1).astype(np.int32)
    labels = (rng.random((n, 4)) < 0.5).astype(np.uint8)
    return Arrays(*map(torch.from_numpy, (rng.random((n, 4), np.float32), context, labels)))


def network_of(config=CONFIG, **changes):
    network = Network(config, torch.Generator().manual_seed(0))
    with torch.no_grad():
        for name, factor in changes.items():
            network.get_parameter(name.replace("__", ".")).mul_(factor)
    return network


def test_a_network_that_heeds_its_context_is_alive():
    # At first its effect is small, as small weights are multiplied by small ones.
    health = health_of(network_of(context__table=30), rows())
    assert health.dead == ()
    assert health.warning() is None
    assert 0 < health.self_attention < 0.75
    assert health.rows == 3000


def test_spreads_are_those_of_the_paths():
    network, data = network_of(), rows()
    paths = network.paths(data.scores, data.context)
    total = (paths.relation_aware + paths.gated + paths.linear).std(correction=0)
    health = health_of(network, data)
    assert health.fused == pytest.approx(total.item(), rel=1e-5)
    assert health.gated == pytest.approx((paths.gated.std(correction=0) / total).item(), rel=1e-5)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ("relation_aware__output__weight", "the relation-aware path adds nothing"),
        ("gated__output__weight", "the gated path adds nothing"),
        ("linear__weight", "the linear path adds nothing"),
        ("relation_aware__query__weight", "the self-attention A_r is uniform"),
        ("relation_aware__context_key__weight", "the cross-attention A_p is uniform"),
        ("context__table", "the context has no effect"),
    ],
)
def test_what_is_shrunk_to_nothing_is_dead(weight, words):
    health = health_of(network_of(**{weight: 1e-9}), rows())
    assert words in health.dead
    assert words in health.warning()
    assert "try less `weight_decay`" in health.warning()


def test_what_a_network_does_not_have_is_not_dead():
    switches = {"gate": False, "linear": False, "self_attention": False, "cross_attention": False}
    config = NetworkConfig(objectives=4, context_slots=(6, 3), personalised=False, **switches)
    health = health_of(network_of(config), rows())
    assert health.dead == ()
    assert (health.gated, health.self_attention, health.context) == (None, None, None)
    assert "A_r" not in health.words()


def test_health_is_saved_with_the_model_and_a_dead_path_warns(tmp_path, caplog):
    method = method_class("harmonrank-paper")(
        buckets=8, epochs=2, batch_rows=500, learning_rate=0.1, weight_decay=9.9
    )
    with caplog.at_level(logging.WARNING, logger="harmonrank"):
        method.fit(planted(), SCHEMA, valid=planted(1000, seed=1))
    message = caplog.records[-1].message
    assert message.startswith("The network of `harmonrank-paper` is partly dead: ")
    assert "A_r is uniform" in message
    method.save(tmp_path / "model")
    assert load(tmp_path / "model").health == method.health


@pytest.mark.parametrize("name", ["elive", "conflict"])
def test_the_published_method_is_alive(name):
    drawn = world(name)
    schema = world_schema(drawn)
    train, valid = (
        read_log(as_frame(drawn, drawn.sample(n, seed=seed)), schema)
        for n, seed in ((40_000, 1), (20_000, 2))
    )
    method = method_class("harmonrank-paper")(steps=200, batch_rows=4_000)
    health = method.fit(train, schema, valid=valid).health
    assert health.dead == ()
    # Far above the thresholds of `dead`.
    assert health.relation_aware > 0.02
    assert health.self_attention > 0.01
    assert health.cross_attention > 0.01
    assert health.context > 1e-4
