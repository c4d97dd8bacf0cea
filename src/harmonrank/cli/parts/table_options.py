"""Options and arguments that name tables."""

__all__ = [
    "Tables",
    "learning_tables",
    "memory_option",
    "table_argument",
    "table_name",
    "table_option",
]

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from harmonrank.cli.parts.options import F
from harmonrank.support.storage.urls import is_url, shown_url

Tables = Path | str | list[Path | str]
"""A table as the command line names it: a file, a folder, a glob or a URL, or the parts of one."""


class _TablePath(click.Path):
    """A path, or a URL, whose two slashes a path would not keep."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if is_url(value) else super().convert(value, param, ctx)


_TABLE = _TablePath(path_type=Path)


def table_option(*names: str, **rest: Any) -> Callable[[F], F]:
    """Return an option that names a table; repeated, the parts of one."""
    return click.option(*names, type=_TABLE, multiple=True, callback=_one_table, **rest)


def table_argument(name: str, *, required: bool = True) -> Callable[[F], F]:
    """Return an argument that names a table; several, as of a glob, are the parts of one."""
    return click.argument(name, nargs=-1, required=required, type=_TABLE, callback=_one_table)


def _one_table(ctx: click.Context, param: click.Parameter, paths: tuple[Path | str, ...]) -> Any:  # noqa: ARG001
    if len(paths) < 2:
        return paths[0] if paths else None
    return list(paths)


def table_name(table: "Tables") -> str:
    """Return what a title calls a table."""
    if isinstance(table, list):
        return f"{table_name(table[0])} and {len(table) - 1} more"
    if isinstance(table, Path):
        return table.name
    return shown_url(table).rstrip("/").rpartition("/")[2]


def learning_tables(valid: str, *, required: bool = True) -> Callable[[F], F]:
    """Return --train and --valid; the text says what the latter is for."""

    def add(function: F) -> F:
        text = f"Table for {valid}; split off the training rows if left out."
        function = table_option("--valid", help=text)(function)
        return table_option("--train", required=required, help="Table to learn from.")(function)

    return add


memory_option = click.option(
    "--memory",
    metavar="SIZE",
    help="Parquet tables larger than this are read in blocks; half of what is free if left out.",
)
