"""Many models on the same data, and one model looked at closely."""

from harmonrank.evaluation.alignment import Alignment, align
from harmonrank.evaluation.baseline import TODAY, Baseline
from harmonrank.evaluation.cautions import cautions_of, unseen_shares
from harmonrank.evaluation.compare import compare
from harmonrank.evaluation.comparison import Comparison
from harmonrank.evaluation.drift_notes import drift_notes
from harmonrank.evaluation.entry import REPLICATES, Entry
from harmonrank.evaluation.evaluate import Evaluation, evaluate
from harmonrank.evaluation.frontier import (
    Floor,
    Front,
    Frontier,
    Guarded,
    Refit,
    Sweep,
    frontier,
    frontier_of,
    guarded_by,
    refits_of,
)
from harmonrank.evaluation.leaderboard import Leaderboard
from harmonrank.evaluation.offline import OfflineObjective, OfflineResult, offline
from harmonrank.evaluation.partitioned import partitioned_quality
from harmonrank.evaluation.recalibration import Recalibrated, recalibration
from harmonrank.evaluation.verdict import relation_of, verdict_of

__all__ = [
    "REPLICATES",
    "TODAY",
    "Alignment",
    "Baseline",
    "Comparison",
    "Entry",
    "Evaluation",
    "Floor",
    "Front",
    "Frontier",
    "Guarded",
    "Leaderboard",
    "OfflineObjective",
    "OfflineResult",
    "Recalibrated",
    "Refit",
    "Sweep",
    "align",
    "cautions_of",
    "compare",
    "drift_notes",
    "evaluate",
    "frontier",
    "frontier_of",
    "guarded_by",
    "offline",
    "partitioned_quality",
    "recalibration",
    "refits_of",
    "relation_of",
    "unseen_shares",
    "verdict_of",
]
