"""Simulated logs whose best possible result is known exactly.

>>> from harmonrank.data.worlds import best_score, world
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
    "best_score",
    "block_generator",
    "draw_candidates",
    "draw_requests",
    "examination_curve",
    "placed",
    "sample_blocks",
    "world",
]

from harmonrank.data.worlds._candidates import DrawnCandidates, draw_candidates
from harmonrank.data.worlds._draws import block_generator, draw_requests
from harmonrank.data.worlds._hidden import Hidden
from harmonrank.data.worlds._interactions import Interactions
from harmonrank.data.worlds._parts import Additive, Swap, WorldDrift
from harmonrank.data.worlds._places import Placed, examination_curve, placed
from harmonrank.data.worlds._presets import WORLDS, world
from harmonrank.data.worlds._request_effects import RequestEffects
from harmonrank.data.worlds._sampling import Sample, sample_blocks
from harmonrank.data.worlds._truth import best_score
from harmonrank.data.worlds._world import World
