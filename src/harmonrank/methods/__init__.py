"""Every way to fuse, with the same verbs: fit, score, rank, evaluate, save, load."""

from harmonrank.methods.base import Method
from harmonrank.methods.catalogue import METHODS, installed_methods, method_class
from harmonrank.methods.quality import Quality, ceiling_of, quality_of
from harmonrank.methods.saved import load

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
