"""Worlds: those that change or break an assumption, trained ones, raw logs, streams of events."""

from typing import TYPE_CHECKING

from harmonrank.support import lazy_names
from harmonrank.worlds import world

if TYPE_CHECKING:
    from harmonrank_lab.worlds.candidates import DrawnCandidates, draw_candidates
    from harmonrank_lab.worlds.changes import Swap, WorldDrift
    from harmonrank_lab.worlds.full_world import World
    from harmonrank_lab.worlds.hidden import Hidden
    from harmonrank_lab.worlds.interactions import Interactions
    from harmonrank_lab.worlds.places import Placed, examination_curve, placed
    from harmonrank_lab.worlds.raw import KuaiRandWorld, TenrecWorld
    from harmonrank_lab.worlds.raw_simulation import simulate_log
    from harmonrank_lab.worlds.redraws import WORLDS, lab_world
    from harmonrank_lab.worlds.request_effects import RequestEffects
    from harmonrank_lab.worlds.simulation import POSITION, simulate, with_places
    from harmonrank_lab.worlds.stream import SimulatedStream
    from harmonrank_lab.worlds.trained import trained_world

_PLACES = {
    "DrawnCandidates": "candidates",
    "Hidden": "hidden",
    "Interactions": "interactions",
    "KuaiRandWorld": "raw",
    "POSITION": "simulation",
    "Placed": "places",
    "RequestEffects": "request_effects",
    "SimulatedStream": "stream",
    "Swap": "changes",
    "TenrecWorld": "raw",
    "WORLDS": "redraws",
    "World": "full_world",
    "WorldDrift": "changes",
    "draw_candidates": "candidates",
    "examination_curve": "places",
    "lab_world": "redraws",
    "placed": "places",
    "simulate": "simulation",
    "simulate_log": "raw_simulation",
    "trained_world": "trained",
    "with_places": "simulation",
}

__all__ = [
    "POSITION",
    "WORLDS",
    "DrawnCandidates",
    "Hidden",
    "Interactions",
    "KuaiRandWorld",
    "Placed",
    "RequestEffects",
    "SimulatedStream",
    "Swap",
    "TenrecWorld",
    "World",
    "WorldDrift",
    "draw_candidates",
    "examination_curve",
    "lab_world",
    "placed",
    "simulate",
    "simulate_log",
    "trained_world",
    "with_places",
    "world",
]

__getattr__ = lazy_names(__name__, _PLACES)
