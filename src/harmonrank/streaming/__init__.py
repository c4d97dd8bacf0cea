"""Streaming: exposure and feedback events become labelled rows, a fresh model, a version."""
