"""Extras: optional packages, and the remedy if one is missing."""

__all__ = ["import_extra", "is_installed", "needs_extras", "plugins", "remedy", "require_extra"]

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from harmonrank.support.errors import DependencyError

_EXTRAS = {
    "fsspec": "stores",
    "httptools": "serve",
    "jinja2": "report",
    "lightgbm": "lightgbm",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "optuna": "search",
    "pandas": "pandas",
    "plotly": "report",
    "pyarrow": "pandas",
    "ray": "ray",
    "redis": "redis",
    "torch": "torch",
    "uvicorn": "serve",
    "uvloop": "serve",
}
"""Which extra installs a package."""


@contextmanager
def needs_extras(who: str) -> Iterator[None]:
    """Turn the absence of an optional package within into one sentence with the remedy.

    >>> with needs_extras("mbce"):
    ...     raise ModuleNotFoundError("No module named 'torch'", name="torch")
    Traceback (most recent call last):
    harmonrank.support.errors.DependencyError: mbce needs the package 'torch'; install it with
    `pip install 'harmonrank[torch]'`.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        # The error of a broken package is not ours to replace.
        if error.name not in _EXTRAS:
            raise
        what = f"{who} needs the package '{error.name}'"
        raise DependencyError(f"{what}; {remedy(error.name)}.") from None


def remedy(package: str) -> str:
    """Return how to get an optional package, as the end of a sentence."""
    return f"install it with `pip install 'harmonrank[{_EXTRAS[package]}]'`"


def import_extra(package: str, *, who: str) -> Any:
    """Return an optional package."""
    with needs_extras(who):
        return import_module(package)


def require_extra(package: str, *, who: str) -> None:
    """Raise an error if an optional package, which is imported later, is not installed."""
    if not is_installed(package):
        raise DependencyError(f"{who} needs the package '{package}'; {remedy(package)}.")


def is_installed(package: str) -> bool:
    """Tell whether a package could be imported, without doing so."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # from an import hook, which may refuse to look for it
        return False


@cache
def plugins(group: str) -> dict[str, str]:
    """Return the entry points of a group that other installed packages add, by name."""
    return {entry.name: entry.value for entry in entry_points(group=group)}
