"""Metrics of a fused score: plain functions of arrays, exact, and fast enough to call often."""

__all__ = [
    "SMALLEST_PROBABILITY",
    "Interval",
    "LoggedValues",
    "Outcomes",
    "RangeTotals",
    "RequestMoments",
    "WholeTotals",
    "argsort",
    "auc",
    "auc_influence",
    "auc_interval",
    "auc_sum_interval",
    "best_request_score",
    "best_score",
    "bootstrap_areas",
    "bootstrap_auc_sum",
    "bootstrap_request_areas",
    "bootstrap_values",
    "concordance",
    "events_at_k",
    "expected_grouped_auc",
    "fit_isotonic",
    "fit_logistic",
    "fit_logistic_curves",
    "grouped_auc",
    "grouped_auc_influence",
    "grouped_auc_intervals",
    "hypervolume",
    "interval_of_sums",
    "isotonic_pools",
    "knee",
    "logged_values",
    "logistic_likelihood",
    "logit",
    "pareto_front",
    "percentiles",
    "place_gains",
    "population_stability_index",
    "range_influence",
    "range_totals",
    "ranges_of",
    "rank",
    "request_areas",
    "request_gains",
    "request_influence",
    "request_moments",
    "sigmoid",
    "spearman",
    "splitters_of",
    "tied_ranges",
    "unit_sums",
    "value_at_k",
    "value_interval",
    "whole_totals",
]

from harmonrank.metrics._auc import auc
from harmonrank.metrics._bootstrap import bootstrap_areas, bootstrap_auc_sum, percentiles
from harmonrank.metrics._calibration import (
    fit_isotonic,
    fit_logistic,
    fit_logistic_curves,
    isotonic_pools,
    logistic_likelihood,
)
from harmonrank.metrics._concordance import concordance
from harmonrank.metrics._distributions import population_stability_index, spearman
from harmonrank.metrics._expected import (
    best_request_score,
    best_score,
    expected_grouped_auc,
    request_gains,
)
from harmonrank.metrics._grouped import (
    RequestMoments,
    grouped_auc,
    grouped_auc_influence,
    grouped_auc_intervals,
    request_areas,
    request_moments,
    unit_sums,
)
from harmonrank.metrics._intervals import (
    Interval,
    auc_influence,
    auc_interval,
    auc_sum_interval,
    interval_of_sums,
    request_influence,
)
from harmonrank.metrics._off_policy import LoggedValues, logged_values
from harmonrank.metrics._outcomes import Outcomes
from harmonrank.metrics._pareto import hypervolume, knee, pareto_front
from harmonrank.metrics._ranges import (
    RangeTotals,
    WholeTotals,
    range_influence,
    range_totals,
    ranges_of,
    splitters_of,
    tied_ranges,
    whole_totals,
)
from harmonrank.metrics._request_bootstrap import bootstrap_request_areas
from harmonrank.metrics._sort import argsort, rank
from harmonrank.metrics._value import (
    bootstrap_values,
    events_at_k,
    place_gains,
    value_at_k,
    value_interval,
)
from harmonrank.support.logistic import SMALLEST_PROBABILITY, logit, sigmoid
