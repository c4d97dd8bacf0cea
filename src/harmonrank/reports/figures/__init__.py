"""Charts of a report, made from its facts."""

from harmonrank.reports.figures.board import auc_bars
from harmonrank.reports.figures.rows import epoch_plots, heatmap

__all__ = ["auc_bars", "epoch_plots", "heatmap"]
