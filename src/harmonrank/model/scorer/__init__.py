"""Scoring with fitted heads: tables and kernels."""
