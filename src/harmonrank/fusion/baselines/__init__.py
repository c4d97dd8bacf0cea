"""What a good engineer would try first."""
