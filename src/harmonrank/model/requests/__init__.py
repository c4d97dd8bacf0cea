"""What a request tells of its rows."""
