"""Tables of Markdown, and the names by which pages ask for them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

TABLES: dict[str, Callable[[], str]] = {}


def table(make: Callable[[], str]) -> Callable[[], str]:
    """Make a function known by its name, with dashes."""
    TABLES[make.__name__.replace("_", "-")] = make
    return make


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]], texts: int = 1) -> str:
    """Return a table whose first columns are texts and whose others stand to the right."""
    lines = [f"| {' | '.join(head)} |", "|---" * texts + "|--:" * (len(head) - texts) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def short(value: float, digits: int = 4) -> str:
    """Return a number without its leading zero."""
    return f"{value:.{digits}f}".replace("0.", ".", 1)


def span(values: Sequence[float], form: str) -> str:
    """Return the least and the largest of some values."""
    return f"{min(values):{form}}–{max(values):{form}}"


def listed(values: dict[str, Any], form: str) -> list[str]:
    """Return values in a format."""
    return [format(value, form) for value in values.values()]
