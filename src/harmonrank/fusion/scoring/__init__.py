"""Scoring tables and requests."""
