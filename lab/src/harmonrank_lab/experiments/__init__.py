"""Experiments online: a closed loop on a simulated platform, and the analysis of A/B logs."""
