"""What learns from labelled rows as they come."""
