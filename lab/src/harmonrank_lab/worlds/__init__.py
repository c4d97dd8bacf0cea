"""Worlds that change or break an assumption; `raw` logs and the `stream` of events beside."""

from harmonrank.worlds import world
from harmonrank_lab.worlds.candidates import DrawnCandidates, draw_candidates
from harmonrank_lab.worlds.changes import Swap, WorldDrift
from harmonrank_lab.worlds.full_world import World
from harmonrank_lab.worlds.hidden import Hidden
from harmonrank_lab.worlds.interactions import Interactions
from harmonrank_lab.worlds.places import Placed, examination_curve, placed
from harmonrank_lab.worlds.redraws import WORLDS, lab_world
from harmonrank_lab.worlds.request_effects import RequestEffects
from harmonrank_lab.worlds.simulation import POSITION, simulate, with_places

__all__ = [
    "POSITION",
    "WORLDS",
    "DrawnCandidates",
    "Hidden",
    "Interactions",
    "Placed",
    "RequestEffects",
    "Swap",
    "World",
    "WorldDrift",
    "draw_candidates",
    "examination_curve",
    "lab_world",
    "placed",
    "simulate",
    "with_places",
    "world",
]
