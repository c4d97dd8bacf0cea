"""Metrics of a fused score: plain functions of arrays, exact, and fast enough to call often."""

__all__ = [
    "SMALLEST_PROBABILITY",
    "Interval",
    "LoggedValues",
    "Outcomes",
    "argsort",
    "auc",
    "auc_influence",
    "auc_intervals",
    "auc_sum_interval",
    "best_request_score",
    "best_score",
    "bootstrap_areas",
    "bootstrap_request_areas",
    "bootstrap_values",
    "concordance",
    "events_at_k",
    "expected_grouped_auc",
    "expected_requests",
    "fit_isotonic",
    "fit_logistic",
    "fit_logistic_curves",
    "grouped_auc",
    "grouped_auc_influence",
    "grouped_auc_intervals",
    "hypervolume",
    "interval_of_sums",
    "knee",
    "logged_values",
    "logistic_likelihood",
    "logit",
    "pareto_front",
    "percentiles",
    "place_gains",
    "population_stability_index",
    "rank",
    "request_areas",
    "request_gains",
    "request_influence",
    "sigmoid",
    "spearman",
    "unit_sums",
    "value_at_k",
]

from harmonrank.metrics._auc import auc
from harmonrank.metrics._bootstrap import bootstrap_areas, percentiles
from harmonrank.metrics._calibration import (
    fit_isotonic,
    fit_logistic,
    fit_logistic_curves,
    logistic_likelihood,
)
from harmonrank.metrics._concordance import concordance
from harmonrank.metrics._distributions import population_stability_index, spearman
from harmonrank.metrics._expected import (
    best_request_score,
    best_score,
    expected_grouped_auc,
    expected_requests,
    request_gains,
)
from harmonrank.metrics._grouped import (
    grouped_auc,
    grouped_auc_influence,
    grouped_auc_intervals,
    request_areas,
    unit_sums,
)
from harmonrank.metrics._intervals import (
    Interval,
    auc_influence,
    auc_intervals,
    auc_sum_interval,
    interval_of_sums,
    request_influence,
)
from harmonrank.metrics._off_policy import LoggedValues, logged_values
from harmonrank.metrics._outcomes import Outcomes
from harmonrank.metrics._pareto import hypervolume, knee, pareto_front
from harmonrank.metrics._request_bootstrap import bootstrap_request_areas
from harmonrank.metrics._sort import argsort, rank
from harmonrank.metrics._value import (
    bootstrap_values,
    events_at_k,
    place_gains,
    value_at_k,
)
from harmonrank.support.logistic import SMALLEST_PROBABILITY, logit, sigmoid
