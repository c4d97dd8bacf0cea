"""Charts of two objectives against each other: what one fit reaches, and where methods stand."""

__all__ = ["tradeoff_legend", "tradeoff_plots"]

from collections.abc import Iterator
from typing import Any

from harmonrank.evaluation.baseline import TODAY
from harmonrank.fusion import Quality
from harmonrank.reports.facts import Facts
from harmonrank.reports.figures.methods import method_styles
from harmonrank.reports.frontier import BEST, REACHED, front_plots
from harmonrank.reports.plots import ACCENT, PALETTE, Plot, hover_text, scatter

_MOST_PAIRS = 4
_MARKS = {"solid": ("x", "✖"), "dash": ("cross", "✚"), "dot": ("diamond", "◆")}
"""The mark of a method in place of its dash, and its sign in a text."""


def tradeoff_legend(facts: Facts) -> list[tuple[str, str, str, bool]]:
    """Return what the lines and marks are."""
    lines = [(REACHED, ACCENT, "solid", True)]
    if facts.frontier is not None and facts.frontier.best is not None:
        lines.append((BEST, PALETTE[1], "dash", True))
    looks = method_styles(facts).items()
    return lines + [(n, look["color"], _MARKS[look["dash"]][1], True) for n, look in looks]


def tradeoff_plots(facts: Facts) -> list[Plot]:
    """One panel per pair of objectives whose AUCs are traded most."""

    def marks(first: str, second: str) -> Iterator[dict[str, Any]]:
        return _marks(facts, first, second)

    reached = facts.frontier
    if reached is None:
        return []
    return front_plots(reached, reached.decisive, "AUC", "frontier", _MOST_PAIRS, marks)


def _marks(facts: Facts, first: str, second: str) -> Iterator[dict[str, Any]]:
    """Yield a mark per method, where it stands as fitted for all objectives together."""
    areas = f"AUC {hover_text(first)} %{{x:.4f}}<br>AUC {hover_text(second)} %{{y:.4f}}"
    for name, look in method_styles(facts).items():
        quality = facts.board.qualities[name]
        areas_of = quality.decisive.areas
        counts = "ranks today" if name == TODAY else _counts(quality, first, second)
        yield scatter(
            name,
            [areas_of[first]],
            [areas_of[second]],
            f"{hover_text(name)}<br>{areas}<br>{counts}",
            meta=name,
            marker={"size": 10, "color": look["color"], "symbol": _MARKS[look["dash"]][0]},
        )


def _counts(quality: Quality, first: str, second: str) -> str:
    """Return what both objectives counted when rows were ranked."""
    what, counted = "weights", quality.weights
    if quality.value is not None and quality.value.ranked:
        what, counted = "values", quality.value.value
    return f"{what}: {', '.join(f'{hover_text(o)} {counted[o]:g}' for o in (first, second))}"
