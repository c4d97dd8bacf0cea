"""The command line: one file per verb."""

from harmonrank.cli.main import main

__all__ = ["main"]
