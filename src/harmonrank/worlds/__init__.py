"""Simulated logs whose best possible result is known exactly.

>>> from harmonrank.metrics import best_score
>>> from harmonrank.worlds import world
>>> sample = world("elive").sample(1000, seed=1)
>>> best_score(sample.truth).shape
(1000,)
"""

__all__ = [
    "PRESETS",
    "SCHEMA",
    "Additive",
    "AnyWorld",
    "Draws",
    "PlainWorld",
    "Recipe",
    "Sample",
    "Simulation",
    "View",
    "as_frame",
    "block_generator",
    "conditional",
    "draw",
    "draw_effects",
    "draw_requests",
    "draw_shares",
    "mean_sigmoid",
    "normal_nodes",
    "preset",
    "runs_of",
    "sample_blocks",
    "simulate",
    "stronger",
    "upstream_scores",
    "world",
    "world_names",
    "world_schema",
]

from harmonrank.worlds.draws import (
    Additive,
    Draws,
    block_generator,
    draw_effects,
    draw_requests,
    draw_shares,
)
from harmonrank.worlds.normal import conditional, mean_sigmoid, normal_nodes, runs_of
from harmonrank.worlds.plain_world import PlainWorld, View, upstream_scores
from harmonrank.worlds.presets import (
    PRESETS,
    AnyWorld,
    Recipe,
    draw,
    preset,
    stronger,
    world,
    world_names,
)
from harmonrank.worlds.sample import Sample, sample_blocks
from harmonrank.worlds.simulation import SCHEMA, Simulation, as_frame, simulate, world_schema
