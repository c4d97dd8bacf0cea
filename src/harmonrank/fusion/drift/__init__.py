"""What scores looked like at the fit, how they moved since, and recalibration."""
