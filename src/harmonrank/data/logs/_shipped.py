"""The declarations that come with the package."""

__all__ = ["SHIPPED", "shipped"]

from functools import cache
from pathlib import Path

from harmonrank.data.logs._declaration import Declaration
from harmonrank.data.logs._declaration_file import read_declaration

SHIPPED = ("kuairand", "tenrec")
"""Public logs whose declarations are here."""


@cache
def shipped(kind: str) -> Declaration:
    """Return the declaration of a public log."""
    return read_declaration(Path(__file__).parent / "declarations" / f"{kind}.toml")
