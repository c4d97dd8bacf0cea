"""HarmonRank: fuse upstream predictions into one ranking score."""

__version__ = "0.1.0"
