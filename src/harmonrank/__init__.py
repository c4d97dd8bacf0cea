"""HarmonRank: fuse a recommender's upstream predictions into one ranking score.

>>> import harmonrank as hr
>>> schema = hr.Schema(objectives={"buy": "p_buy", "like": "p_like"}, context=["hour"])
>>> schema.names
('buy', 'like')
"""

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.data.guess import guess_schema
    from harmonrank.data.schema import Schema
    from harmonrank.data.split_files import split
    from harmonrank.data.splitting import Cut
    from harmonrank.evaluation.alignment import align
    from harmonrank.evaluation.compare import compare
    from harmonrank.evaluation.comparison import Comparison
    from harmonrank.evaluation.evaluate import evaluate
    from harmonrank.evaluation.frontier import frontier
    from harmonrank.evaluation.offline import offline
    from harmonrank.fusion.baselines.closed_form import ClosedForm
    from harmonrank.fusion.harmonrank import HarmonRank
    from harmonrank.fusion.saved import load
    from harmonrank.metrics import auc, rank
    from harmonrank.paper import Network, NetworkConfig
    from harmonrank.paper.losses import rank_auc_loss
    from harmonrank.paper.methods.harmonrank_network import HarmonRankNetwork
    from harmonrank.paper.methods.neural_methods import HarmonRankPaper
    from harmonrank.paper.soft_rank import soft_rank
    from harmonrank.reports.explanation import explain
    from harmonrank.reports.written import write_figures, write_report
    from harmonrank.support.errors import HarmonRankError
    from harmonrank.worlds import world

__version__ = "0.1.0"

__all__ = [
    "ClosedForm",
    "Comparison",
    "Cut",
    "HarmonRank",
    "HarmonRankError",
    "HarmonRankNetwork",
    "HarmonRankPaper",
    "Network",
    "NetworkConfig",
    "Schema",
    "__version__",
    "align",
    "auc",
    "compare",
    "evaluate",
    "explain",
    "frontier",
    "guess_schema",
    "load",
    "offline",
    "rank",
    "rank_auc_loss",
    "soft_rank",
    "split",
    "world",
    "write_figures",
    "write_report",
]

_PLACES = {
    "ClosedForm": "fusion.baselines.closed_form",
    "Comparison": "evaluation.comparison",
    "Cut": "data.splitting",
    "HarmonRank": "fusion.harmonrank",
    "HarmonRankError": "support.errors",
    "HarmonRankNetwork": "paper.methods.harmonrank_network",
    "HarmonRankPaper": "paper.methods.neural_methods",
    "Network": "paper",
    "NetworkConfig": "paper",
    "Schema": "data.schema",
    "align": "evaluation.alignment",
    "auc": "metrics",
    "compare": "evaluation.compare",
    "evaluate": "evaluation.evaluate",
    "explain": "reports.explanation",
    "frontier": "evaluation.frontier",
    "guess_schema": "data.guess",
    "load": "fusion.saved",
    "offline": "evaluation.offline",
    "rank": "metrics",
    "rank_auc_loss": "paper.losses",
    "soft_rank": "paper.soft_rank",
    "split": "data.split_files",
    "world": "worlds",
    "write_figures": "reports.written",
    "write_report": "reports.written",
}

# Names are imported when first used, so that importing the package costs nothing.
__getattr__ = lazy_names(__name__, _PLACES)


def __dir__() -> list[str]:
    return __all__
