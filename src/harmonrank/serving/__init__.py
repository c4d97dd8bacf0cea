"""Serving: a fitted model answers requests over HTTP; a worker loads no training code."""

from harmonrank.serving.runtime import Candidates, Runtime
from harmonrank.serving.settings import ServeConfig

__all__ = ["Candidates", "Runtime", "ServeConfig"]
