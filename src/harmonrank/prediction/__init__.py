"""The stage before the fusion: from an interaction log to a calibrated score per objective."""

from harmonrank.prediction.config import NETWORKS, PredictorConfig
from harmonrank.prediction.fitting import fit_predictor
from harmonrank.prediction.folds import Folds
from harmonrank.prediction.predictor import FULL, Predictor, load_predictor
from harmonrank.prediction.scoring import fusion_schema, score_log, score_rows

__all__ = [
    "FULL",
    "NETWORKS",
    "Folds",
    "Predictor",
    "PredictorConfig",
    "fit_predictor",
    "fusion_schema",
    "load_predictor",
    "score_log",
    "score_rows",
]
