"""Simulated logs whose best possible result is known exactly.

>>> from harmonrank.metrics import best_score
>>> from harmonrank.worlds import world
>>> sample = world("elive").sample(1000, seed=1)
>>> best_score(sample.truth).shape
(1000,)
"""

__all__ = [
    "WORLDS",
    "Additive",
    "DrawnCandidates",
    "Hidden",
    "Interactions",
    "Placed",
    "RequestEffects",
    "Sample",
    "Swap",
    "World",
    "WorldDrift",
    "block_generator",
    "draw_candidates",
    "draw_requests",
    "examination_curve",
    "placed",
    "sample_blocks",
    "world",
]

from harmonrank.worlds._candidates import DrawnCandidates, draw_candidates
from harmonrank.worlds._draws import block_generator, draw_requests
from harmonrank.worlds._hidden import Hidden
from harmonrank.worlds._interactions import Interactions
from harmonrank.worlds._parts import Additive, Swap, WorldDrift
from harmonrank.worlds._places import Placed, examination_curve, placed
from harmonrank.worlds._presets import WORLDS, world
from harmonrank.worlds._request_effects import RequestEffects
from harmonrank.worlds._sampling import Sample, sample_blocks
from harmonrank.worlds._world import World
