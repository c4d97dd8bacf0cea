"""Where work runs: in this process, or on the workers of a Ray cluster, with the same results."""

from harmonrank.engine.local import LocalEngine
from harmonrank.engine.protocol import Engine, Resident, in_order
from harmonrank.engine.starting import open_engine
from harmonrank.engine.using import current_engine, using

__all__ = [
    "Engine",
    "LocalEngine",
    "Resident",
    "current_engine",
    "in_order",
    "open_engine",
    "using",
]
