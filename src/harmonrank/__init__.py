"""HarmonRank: fuse a recommender's upstream predictions into one ranking score.

>>> import harmonrank as hr
>>> schema = hr.Schema(objectives={"buy": "p_buy", "like": "p_like"}, context=["hour"])
>>> schema.names
('buy', 'like')
"""

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.data.schema import Schema
    from harmonrank.evaluation.compare import compare
    from harmonrank.fusion.baselines.closed_form import ClosedForm
    from harmonrank.fusion.harmonrank import HarmonRank
    from harmonrank.fusion.saved import load
    from harmonrank.metrics import auc, rank
    from harmonrank.paper import Network, NetworkConfig
    from harmonrank.paper.losses import rank_auc_loss
    from harmonrank.paper.methods.harmonrank_network import HarmonRankNetwork
    from harmonrank.paper.methods.harmonrank_paper import HarmonRankPaper
    from harmonrank.paper.soft_rank import soft_rank
    from harmonrank.support.errors import HarmonRankError
    from harmonrank.worlds import world

__version__ = "0.1.0"

__all__ = [
    "ClosedForm",
    "HarmonRank",
    "HarmonRankError",
    "HarmonRankNetwork",
    "HarmonRankPaper",
    "Network",
    "NetworkConfig",
    "Schema",
    "__version__",
    "auc",
    "compare",
    "load",
    "rank",
    "rank_auc_loss",
    "soft_rank",
    "world",
]

_PLACES = {
    "ClosedForm": "fusion.baselines.closed_form",
    "HarmonRank": "fusion.harmonrank",
    "HarmonRankError": "support.errors",
    "HarmonRankNetwork": "paper.methods.harmonrank_network",
    "HarmonRankPaper": "paper.methods.harmonrank_paper",
    "Network": "paper",
    "NetworkConfig": "paper",
    "Schema": "data.schema",
    "auc": "metrics",
    "compare": "evaluation.compare",
    "load": "fusion.saved",
    "rank": "metrics",
    "rank_auc_loss": "paper.losses",
    "soft_rank": "paper.soft_rank",
    "world": "worlds",
}

# Names are imported when first used, so that importing the package costs nothing.
__getattr__ = lazy_names(__name__, _PLACES)


def __dir__() -> list[str]:
    return __all__
