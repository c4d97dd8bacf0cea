"""Lazy names: a package imports one of its files when a name of that file is first used."""

__all__ = ["lazy_names"]

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import get_data
from typing import Any

from harmonrank.support.extras import needs_extras


def lazy_names(package: str) -> Callable[[str], Any]:
    """Return a package's `__getattr__`, which imports a name when it is first used.

    The names are those that the package imports for type checkers, under `if TYPE_CHECKING:`. So
    they are written once.
    """

    def get(name: str) -> Any:
        module = _modules(package).get(name)
        if module is None:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        with needs_extras(name):
            value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return get


@cache
def _modules(package: str) -> dict[str, str]:
    """Return the module of every name that a package imports for type checkers."""
    statements = ast.parse(get_data(package, "__init__.py") or b"").body
    lines = (line for part in statements if isinstance(part, ast.If) for line in part.body)
    imports = (line for line in lines if isinstance(line, ast.ImportFrom))
    return {name.name: str(line.module) for line in imports for name in line.names}
