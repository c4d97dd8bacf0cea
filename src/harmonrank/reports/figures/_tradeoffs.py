"""Charts of two objectives against each other as their weights move."""

__all__ = ["tradeoff_legend", "tradeoff_plots"]

from collections.abc import Iterable
from typing import Any

from harmonrank.evaluation.baseline import TODAY
from harmonrank.fusion import Quality
from harmonrank.reports.facts import Facts
from harmonrank.reports.figures._methods import method_styles
from harmonrank.reports.plots import ACCENT, PALETTE, Plot, hover_text, line, plot, scatter
from harmonrank.reports.tradeoffs import Tradeoff
from harmonrank.support.table import table_of

_MARKS = {"solid": ("x", "✖"), "dash": ("cross", "✚"), "dot": ("diamond", "◆")}
"""The mark of a method in place of its dash, and its sign in a text."""
_BEST = "best possible"

Point = tuple[float, float]


def tradeoff_legend(facts: Facts) -> tuple[tuple[str, str, str, bool], ...]:
    """Return what the lines and marks are."""
    if not facts.tradeoffs:
        return ()
    lines = [(f"{facts.focus}, re-weighted", ACCENT, "solid", True)]
    if any(tradeoff.best for tradeoff in facts.tradeoffs):
        lines.append((_BEST, PALETTE[1], "dash", True))
    marks = [(n, s["color"], _MARKS[s["dash"]][1], True) for n, s in method_styles(facts).items()]
    return (*lines, *marks)


def tradeoff_plots(facts: Facts) -> list[Plot]:
    """One panel per pair of objectives: the frontier by weights, and where the methods stand."""
    return [_tradeoff_plot(facts, tradeoff) for tradeoff in facts.tradeoffs]


def _tradeoff_plot(facts: Facts, t: Tradeoff) -> Plot:
    best = {"color": PALETTE[1], "dash": "dash"}
    data = [line(_BEST, *_xy(t.best), "%{x:.4f}, %{y:.4f}", best)] if t.best else []
    data += [_frontier(facts, t), *_marks(facts, t)]
    reach = f" of {t.best_volume:.4f} possible" if t.best_volume is not None else ""
    corner = {"x": 0.02, "y": 0.01, "xref": "paper", "yref": "paper", "showarrow": False}
    weight, areas = f"weight of {t.first}", (f"AUC {t.first}", f"AUC {t.second}")
    rows = [
        (share, *point, "yes" if unbeaten else "no")
        for share, point, unbeaten in zip(t.shares, t.points, t.unbeaten, strict=True)
    ]
    formats = {weight: ".0%"} | dict.fromkeys(areas, ".4f")
    return plot(
        f"frontier-{t.first}-{t.second}",
        f"{t.first} against {t.second}",
        data,
        table_of((weight, *areas, "unbeaten"), rows, formats),
        x={"title": f"AUC of {t.first}"},
        y={"title": f"AUC of {t.second}"},
        height=380,
        annotations=[{**corner, "text": f"hypervolume {t.volume:.4f}{reach}"}],
    )


def _frontier(facts: Facts, t: Tradeoff) -> dict[str, Any]:
    """Return the points of one fit as its weights move."""
    first, second = hover_text(t.first), hover_text(t.second)
    return line(
        f"{facts.focus}, re-weighted",
        *_xy(t.points),
        f"weights: {first} %{{customdata:.0f}} %, {second} the rest<br>"
        f"AUC {first} %{{x:.4f}}<br>AUC {second} %{{y:.4f}}",
        {"color": ACCENT},
        "lines+markers",
        customdata=[100 * share for share in t.shares],
        marker={
            "size": [8 if unbeaten else 5 for unbeaten in t.unbeaten],
            "symbol": ["circle" if unbeaten else "circle-open" for unbeaten in t.unbeaten],
        },
    )


def _marks(facts: Facts, t: Tradeoff) -> Iterable[dict[str, Any]]:
    """Yield a mark per method, where it stands as fitted for all objectives together."""
    first, second, looks = hover_text(t.first), hover_text(t.second), method_styles(facts)
    for name, point in t.others.items():
        counts = "ranks today" if name == TODAY else _counts(facts.board.qualities[name], t)
        look = looks[name]
        yield scatter(
            name,
            *_xy([point]),
            f"{hover_text(name)}<br>{counts}<br>AUC {first} %{{x:.4f}}<br>AUC {second} %{{y:.4f}}",
            meta=name,
            marker={"size": 10, "color": look["color"], "symbol": _MARKS[look["dash"]][0]},
        )


def _counts(quality: Quality, t: Tradeoff) -> str:
    """Return what both objectives counted when rows were ranked."""
    what, counted = "weights", quality.weights
    if quality.value is not None and quality.value.ranked:
        what, counted = "values", quality.value.value
    shown = ", ".join(f"{hover_text(o)} {counted[o]:g}" for o in (t.first, t.second))
    return f"{what}: {shown}"


def _xy(points: Iterable[Point]) -> tuple[list[float], list[float]]:
    pairs = list(points)
    return [x for x, _ in pairs], [y for _, y in pairs]
