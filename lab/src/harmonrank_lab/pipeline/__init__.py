"""Both stages with one command: raw logs to scores, and a comparison of fusions."""
