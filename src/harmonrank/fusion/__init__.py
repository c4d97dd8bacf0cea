"""Every way to fuse, with the same verbs: fit, score, rank, evaluate, save, load."""

from typing import TYPE_CHECKING

from harmonrank.fusion.catalogue import METHODS, installed_methods, method_class
from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.fusion.method import Method
    from harmonrank.fusion.quality.outcomes import best_terms, true_outcomes
    from harmonrank.fusion.quality.quality import Quality, ceiling_of, quality_of
    from harmonrank.fusion.saved import load
    from harmonrank.fusion.scoring import score_file, score_files, write_table

__all__ = [
    "METHODS",
    "Method",
    "Quality",
    "best_terms",
    "ceiling_of",
    "installed_methods",
    "load",
    "method_class",
    "quality_of",
    "score_file",
    "score_files",
    "true_outcomes",
    "write_table",
]

_PLACES = {
    "Method": "method",
    "Quality": "quality.quality",
    "ceiling_of": "quality.quality",
    "load": "saved",
    "quality_of": "quality.quality",
    "score_file": "scoring",
    "score_files": "scoring",
    "write_table": "scoring",
    "best_terms": "quality.outcomes",
    "true_outcomes": "quality.outcomes",
}

# The help of the command line lists the methods, and must not wait for what they need.
__getattr__ = lazy_names(__name__, _PLACES)
