"""Style: a method's colour and dash, and which methods have a result."""

__all__ = ["ended", "style"]

from typing import Any

from harmonrank.reports.facts import Facts
from harmonrank.reports.plots import DASHES, PALETTE


def style(facts: Facts, name: str) -> dict[str, Any]:
    """Return a method's colour and dash, the same in every chart."""
    order = [m["name"] for m in facts.board["methods"] if m["error"] is None]
    place = order.index(name)
    return {
        "color": PALETTE[place % len(PALETTE)],
        "dash": DASHES[place // len(PALETTE) % len(DASHES)],
    }


def ended(facts: Facts) -> list[dict[str, Any]]:
    return [m for m in facts.board["methods"] if m["error"] is None]
