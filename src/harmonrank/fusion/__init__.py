"""Every way to fuse, with the same verbs: fit, score, rank, evaluate, save, load."""

from typing import TYPE_CHECKING

from harmonrank.fusion.catalogue import METHODS, installed_methods, method_class
from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.fusion.method import Method
    from harmonrank.fusion.quality.quality import Quality, ceiling_of, quality_of
    from harmonrank.fusion.saved import load

__all__ = [
    "METHODS",
    "Method",
    "Quality",
    "ceiling_of",
    "installed_methods",
    "load",
    "method_class",
    "quality_of",
]

_PLACES = {
    "Method": "method",
    "Quality": "quality.quality",
    "ceiling_of": "quality.quality",
    "load": "saved",
    "quality_of": "quality.quality",
}

# The help of the command line lists the methods, and must not wait for what they need.
__getattr__ = lazy_names(__name__, _PLACES)
