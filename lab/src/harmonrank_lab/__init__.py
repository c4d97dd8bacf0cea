"""The laboratory: what proves HarmonRank, built on its public names alone."""

__all__ = ["__version__"]

__version__ = "0.1.0"
