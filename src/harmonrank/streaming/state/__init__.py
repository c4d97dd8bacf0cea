"""What a stream keeps, exactly once."""
