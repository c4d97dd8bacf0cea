"""Rows that miss a score."""
