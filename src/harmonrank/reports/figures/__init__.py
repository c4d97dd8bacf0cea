"""Charts of a report, made from its facts."""

__all__ = [
    "UPSTREAM",
    "auc_bars",
    "auc_plots",
    "calibration_plots",
    "context_plots",
    "correlation_plots",
    "drift_plots",
    "epoch_plots",
    "heatmap",
    "leaderboard_plots",
    "method_styles",
    "pull_plot",
    "regret_plot",
    "response_panels",
    "response_plots",
    "share_plot",
    "tradeoff_legend",
    "tradeoff_plots",
    "training_plots",
]

from harmonrank.reports.figures._board import auc_bars, auc_plots, leaderboard_plots, regret_plot
from harmonrank.reports.figures._data import (
    correlation_plots,
    drift_plots,
    epoch_plots,
    heatmap,
    training_plots,
)
from harmonrank.reports.figures._methods import (
    UPSTREAM,
    calibration_plots,
    context_plots,
    method_styles,
    pull_plot,
    response_panels,
    response_plots,
    share_plot,
)
from harmonrank.reports.figures._tradeoffs import tradeoff_legend, tradeoff_plots
