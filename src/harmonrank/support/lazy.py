"""Lazy names: a package imports a file of its own when a name of that file is first used."""

__all__ = ["lazy_names"]

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from linecache import getlines
from typing import Any

from harmonrank.support.extras import needs_extras


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package, such as 'harmonrank.metrics'.

    What its block `if TYPE_CHECKING:` imports for type checkers, a running program imports when
    it first asks for the name.
    """

    @cache
    def modules() -> dict[str, str]:
        """Return the module of each name."""
        source = "".join(getlines(str(sys.modules[package].__file__), vars(sys.modules[package])))
        blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
        imports = [node for block in blocks for node in block.body]
        return {
            alias.name: str(node.module)
            for node in imports
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def get(name: str) -> Any:
        if name not in modules():
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        with needs_extras(name):
            value = getattr(import_module(modules()[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: list(sys.modules[package].__all__)
