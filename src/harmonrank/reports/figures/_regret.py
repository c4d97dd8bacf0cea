"""Chart of regrets: a row per method, a dot per world, on a log scale."""

__all__ = ["regret_plot"]

from collections.abc import Mapping
from math import log10
from typing import Any

from harmonrank.reports.plots import ACCENT, INK, LEGEND, MUTED, PALETTE, Plot, plot, scatter
from harmonrank.support.table import table_of

_ROW = 26
_LEAST = 1e-6
_SYMBOLS = ("circle", "diamond", "square", "triangle-up")


def regret_plot(
    title: str,
    regrets: Mapping[str, Mapping[str, float]],
    focus: str | None = None,
    criterion: str = "AUC-sum",
) -> Plot:
    """Draw each method's regret in each world, methods in the order given.

    Args:
        title: Above the chart.
        regrets: By method and world; a method may lack a world.
        focus: The method that stands out.
        criterion: What is below its ceiling.
    """
    worlds = list(dict.fromkeys(world for found in regrets.values() for world in found))
    shown = {m: {w: max(r, _LEAST) for w, r in found.items()} for m, found in regrets.items()}
    every = [regret for found in shown.values() for regret in found.values()]
    alone = len(worlds) == 1
    data = [_stems(shown, min(every) / 2 if alone else None)]
    data += [_dots(shown, world, place, focus, alone) for place, world in enumerate(worlds)]
    rows = [(method, *(found.get(w) for w in worlds)) for method, found in shown.items()]
    columns = ("regret",) if alone else tuple(worlds)
    # A text behind the last dot takes a decade.
    ends = [log10(min(every) / 2), log10(max(every) * (12 if alone else 2))]
    return plot(
        "regret",
        title,
        data,
        table_of(("method", *columns), rows, dict.fromkeys(columns, ".5f")),
        x={
            "title": f"ceiling − {criterion} (log scale)",
            "type": "log",
            "range": ends,
            "dtick": 1,
            "tickformat": ".6~f",
        },
        y={"autorange": "reversed", "showgrid": not alone, "type": "category"},
        height=140 + _ROW * len(shown),
        wide=not alone,
        showlegend=not alone,
        legend=LEGEND,
    )


def _stems(shown: Mapping[str, Mapping[str, float]], start: float | None) -> dict[str, Any]:
    """Return a thin line per method, from its least regret or from a start to its largest."""
    ends = {m: (start or min(f.values()), max(f.values())) for m, f in shown.items() if f}
    x = [v for low, high in ends.values() for v in (low, high, None)]
    y = [v for method in ends for v in (method, method, None)]
    line = {"color": MUTED, "width": 1}
    return scatter("", x, y, "", "lines", line=line, hoverinfo="skip", showlegend=False)


def _dots(
    shown: Mapping[str, Mapping[str, float]], world: str, place: int, focus: str | None, alone: bool
) -> dict[str, Any]:
    found = {method: each[world] for method, each in shown.items() if world in each}
    marker: dict[str, Any] = {"size": 11, "color": [ACCENT if m == focus else INK for m in found]}
    if not alone:
        symbol = _SYMBOLS[place % len(_SYMBOLS)]
        marker = {"size": 10, "color": PALETTE[place % len(PALETTE)], "symbol": symbol}
    return scatter(
        world,
        list(found.values()),
        list(found),
        f"%{{y}}<br>{world} %{{x:.4f}}",
        "markers+text" if alone else "markers",
        marker=marker,
        text=[f"{regret:.4f}" for regret in found.values()],
        textposition="middle right",
    )
