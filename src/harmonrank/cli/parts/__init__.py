"""Options that verbs share, and how results are shown."""
