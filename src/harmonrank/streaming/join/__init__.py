"""Exposures and feedback to labelled rows."""
