"""HarmonRank: fuse a recommender's upstream predictions into one ranking score.

>>> import harmonrank as hr
>>> schema = hr.Schema(objectives={"buy": "p_buy", "like": "p_like"}, context=["hour"])
>>> schema.names
('buy', 'like')
"""

from typing import TYPE_CHECKING

from harmonrank.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.data.schema import Schema
    from harmonrank.errors import HarmonRankError
    from harmonrank.evaluation.compare import compare
    from harmonrank.evaluation.worlds import world
    from harmonrank.losses import rank_auc_loss
    from harmonrank.methods.closed_form import ClosedForm
    from harmonrank.methods.harmonrank import HarmonRank
    from harmonrank.methods.harmonrank_network import HarmonRankNetwork
    from harmonrank.methods.harmonrank_paper import HarmonRankPaper
    from harmonrank.methods.saved import load
    from harmonrank.metrics import auc
    from harmonrank.model import Network, NetworkConfig
    from harmonrank.ranking import rank, soft_rank

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
    "ClosedForm": "methods.closed_form",
    "HarmonRank": "methods.harmonrank",
    "HarmonRankError": "errors",
    "HarmonRankNetwork": "methods.harmonrank_network",
    "HarmonRankPaper": "methods.harmonrank_paper",
    "Network": "model",
    "NetworkConfig": "model",
    "Schema": "data.schema",
    "auc": "metrics",
    "compare": "evaluation.compare",
    "load": "methods.saved",
    "rank": "ranking",
    "rank_auc_loss": "losses",
    "soft_rank": "ranking",
    "world": "evaluation.worlds",
}

# Names are imported when first used, so that importing the package costs nothing.
__getattr__ = lazy_names(__name__, _PLACES)


def __dir__() -> list[str]:
    return __all__
