"""The density of scores given the context, without labels."""
