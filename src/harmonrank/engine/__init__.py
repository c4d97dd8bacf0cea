"""Where work runs: in this process, or on the workers of a Ray cluster, with the same results."""

from harmonrank.engine.engine import Engine, LocalEngine, Resident, current_engine, in_order, using
from harmonrank.engine.starting import open_engine

__all__ = [
    "Engine",
    "LocalEngine",
    "Resident",
    "current_engine",
    "in_order",
    "open_engine",
    "using",
]
