"""Baselines: methods that a good engineer would try first."""
