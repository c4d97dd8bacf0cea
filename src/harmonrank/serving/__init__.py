"""Serving: a fitted model answers requests over HTTP; a worker loads no training code."""

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.serving.runtime import Candidates, Runtime
    from harmonrank.serving.settings import ServeConfig

__all__ = ["Candidates", "Runtime", "ServeConfig"]

_PLACES = {"Candidates": "runtime", "Runtime": "runtime", "ServeConfig": "settings"}

# A service starts its workers before it loads anything itself.
__getattr__ = lazy_names(__name__, _PLACES)


def __dir__() -> list[str]:
    return __all__
