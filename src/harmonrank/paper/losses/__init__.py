"""Losses for one fused score and many objectives: plain functions of tensors.

All take scores of (rows,), labels of (rows, objectives) in [0, 1] and return a float64 scalar that
is differentiable in the scores.
"""

__all__ = [
    "MOST_OBJECTIVES",
    "LossInputs",
    "Patterns",
    "aucm_loss",
    "aucm_parts",
    "bce_loss",
    "label_aggregation_loss",
    "optimal_label_values",
    "pairwise_logistic_loss",
    "pairwise_square_loss",
    "policy_gradient_loss",
    "rank_auc_loss",
    "rank_auc_parts",
]

from harmonrank.paper.losses._inputs import LossInputs
from harmonrank.paper.losses._labels import MOST_OBJECTIVES, Patterns
from harmonrank.paper.losses._pairwise import (
    aucm_loss,
    aucm_parts,
    pairwise_logistic_loss,
    pairwise_square_loss,
)
from harmonrank.paper.losses._pointwise import (
    bce_loss,
    label_aggregation_loss,
    optimal_label_values,
    policy_gradient_loss,
)
from harmonrank.paper.losses._rank_auc import rank_auc_loss, rank_auc_parts
