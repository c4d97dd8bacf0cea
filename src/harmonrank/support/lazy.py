"""Lazy names: a package imports a file of its own when a name of that file is first used."""

__all__ = ["lazy_names"]

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from harmonrank.support.extras import needs_extras


def lazy_names(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's `__getattr__`, which imports a name when it is first asked for.

    Args:
        package: The module, such as 'harmonrank.metrics'.
        places: The file, relative to the package, of every name.
    """

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        with needs_extras(name):
            value = getattr(import_module(f"{package}.{places[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
