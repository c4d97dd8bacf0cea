"""Optional packages: imported when a method needs them, with the remedy if they are missing."""

__all__ = ["import_extra"]

from importlib import import_module
from typing import Any

from harmonrank.errors import DependencyError


def import_extra(package: str, *, extra: str, method: str) -> Any:
    """Return an optional package.

    >>> import_extra("no_such_package", extra="search", method="formula-tpe")
    Traceback (most recent call last):
    harmonrank.errors.DependencyError: formula-tpe needs the package 'no_such_package'. Install it
    with: pip install 'harmonrank[search]'.
    """
    try:
        return import_module(package)
    except ImportError as error:
        # A package that is there but broken has its own story to tell.
        if error.name != package:
            raise
        raise DependencyError(
            f"{method} needs the package '{package}'. "
            f"Install it with: pip install 'harmonrank[{extra}]'."
        ) from None
