"""Lazy names: a package imports a file of its own when a name of that file is first used."""

__all__ = ["attribute"]

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from harmonrank.extras import needs_extras


def attribute(package: str, name: str, places: Mapping[str, str]) -> Any:
    """Return a name of a package, and keep it there; for a module's `__getattr__`.

    Args:
        package: The module that is asked, such as 'harmonrank.ranking'.
        name: What it is asked for.
        places: The file, relative to the package, of every name.
    """
    if name not in places:
        raise AttributeError(f"module '{package}' has no attribute '{name}'")
    with needs_extras(name):
        value = getattr(import_module(f"{package}.{places[name]}"), name)
    setattr(sys.modules[package], name, value)
    return value
