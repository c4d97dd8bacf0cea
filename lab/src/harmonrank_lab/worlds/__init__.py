"""Worlds beside those of the product: trained scores, raw logs, streams of events."""
