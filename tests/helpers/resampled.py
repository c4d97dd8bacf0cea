"""The interval of a weighted sum by resampled logs, which intervals by influences must resemble."""

import numpy as np

from harmonrank.metrics import Outcomes, auc, bootstrap_areas, percentiles


def bootstrap_auc_sum(
    scores, labels, *, minus=None, objective_weights=None, level=0.95, sample_weight=None, **draws
):
    """Return the percentile interval of Σ_m w_m AUC_m, or of the difference to other scores."""
    special = isinstance(labels, Outcomes)
    labels = labels if special else np.asarray(labels).reshape(len(scores), -1)
    count = labels.objectives if special else labels.shape[1]
    weights = np.ones(count) if objective_weights is None else np.asarray(objective_weights, float)
    used = np.flatnonzero(weights)
    labels = labels.columns(used) if special else labels[:, used]

    def sums(values):
        area = auc(values, labels, sample_weight=sample_weight)
        drawn = bootstrap_areas(values, labels, sample_weight=sample_weight, **draws)
        return area @ weights[used], drawn @ weights[used]

    estimate, drawn = sums(scores)
    if minus is not None:
        other, shared = sums(minus)
        estimate, drawn = estimate - other, drawn - shared
    return percentiles(float(estimate), drawn, level)
