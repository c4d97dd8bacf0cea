"""Heads that are linear in the coordinates of the scores, given the context."""
