"""Worlds that change or break an assumption; `raw` logs and the `stream` of events beside."""

from harmonrank.worlds import world
from harmonrank_lab.worlds.candidates import draw_candidates
from harmonrank_lab.worlds.full_world import World
from harmonrank_lab.worlds.parts import Swap
from harmonrank_lab.worlds.redraws import WORLDS, lab_world
from harmonrank_lab.worlds.request_areas import RequestAreas
from harmonrank_lab.worlds.simulation import (
    LATER,
    POSITION,
    examination_curve,
    log_of,
    logs_of,
    sample_to_test,
    simulate,
    with_places,
)

__all__ = [
    "LATER",
    "POSITION",
    "WORLDS",
    "RequestAreas",
    "Swap",
    "World",
    "draw_candidates",
    "examination_curve",
    "lab_world",
    "log_of",
    "logs_of",
    "sample_to_test",
    "simulate",
    "with_places",
    "world",
]
