"""Serving: a fitted model answers requests over HTTP; a worker loads no training code."""

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.serving.runtime import Candidates, Runtime
    from harmonrank.serving.settings import ServeConfig

__all__ = ["Candidates", "Runtime", "ServeConfig"]

# A service starts its workers before it loads anything itself.
__getattr__, __dir__ = lazy_names(__name__)
