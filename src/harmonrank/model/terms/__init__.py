"""What linear heads leave unexplained."""
