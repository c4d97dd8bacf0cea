"""The stage before the fusion: from an interaction log to a calibrated score per objective."""

from harmonrank_lab.upstream.fitting import fit_predictor
from harmonrank_lab.upstream.network import PredictorConfig
from harmonrank_lab.upstream.predictor import FULL, Predictor, load_predictor
from harmonrank_lab.upstream.scoring import fusion_schema, score_frame, score_log, score_rows

__all__ = [
    "FULL",
    "Predictor",
    "PredictorConfig",
    "fit_predictor",
    "fusion_schema",
    "load_predictor",
    "score_frame",
    "score_log",
    "score_rows",
]
