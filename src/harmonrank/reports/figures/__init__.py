"""Charts of a report, made from its facts."""

__all__ = [
    "attention_methods",
    "auc_bars",
    "auc_plots",
    "calibration_plots",
    "ceiling_line",
    "context_plots",
    "correlation_plots",
    "drift_plots",
    "epoch_plots",
    "heatmap",
    "leaderboard_plots",
    "pull_plot",
    "regret_plot",
    "response_panels",
    "response_plots",
    "share_plot",
    "style",
    "tradeoff_plots",
    "training_plots",
]

from harmonrank.reports.figures._board import auc_bars, auc_plots, leaderboard_plots
from harmonrank.reports.figures._calibration import calibration_plots
from harmonrank.reports.figures._common import ceiling_line, heatmap, style
from harmonrank.reports.figures._curves import drift_plots, epoch_plots, training_plots
from harmonrank.reports.figures._regret import regret_plot
from harmonrank.reports.figures._relations import attention_methods, correlation_plots
from harmonrank.reports.figures._tradeoffs import tradeoff_plots
from harmonrank.reports.figures._weights import (
    context_plots,
    pull_plot,
    response_panels,
    response_plots,
    share_plot,
)
