"""Many models on the same data, and one model looked at closely."""

from harmonrank.evaluation.alignment import Alignment, agreement, align
from harmonrank.evaluation.baseline import Baseline
from harmonrank.evaluation.compare import compare
from harmonrank.evaluation.comparison import Comparison
from harmonrank.evaluation.drift_notes import drift_notes
from harmonrank.evaluation.entry import Entry
from harmonrank.evaluation.evaluate import Evaluation, evaluate
from harmonrank.evaluation.leaderboard import Leaderboard

__all__ = [
    "Alignment",
    "Baseline",
    "Comparison",
    "Entry",
    "Evaluation",
    "Leaderboard",
    "agreement",
    "align",
    "compare",
    "drift_notes",
    "evaluate",
]
