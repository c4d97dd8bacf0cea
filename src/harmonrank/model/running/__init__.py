"""The fit of a stream."""
