"""Charts as plain SVG, for paper and for browsers that run no script."""

from harmonrank.reports.svg._picture import svg

__all__ = ["svg"]
