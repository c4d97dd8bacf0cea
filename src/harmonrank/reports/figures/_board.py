"""Charts of the leaderboard and of each objective."""

__all__ = ["auc_bars", "auc_plots", "leaderboard_plots"]

from collections.abc import Mapping, Sequence

from harmonrank.reports.facts import Facts
from harmonrank.reports.figures._common import ceiling_line
from harmonrank.reports.figures._regret import regret_plot
from harmonrank.reports.plots import (
    ACCENT,
    INK,
    LEGEND,
    MUTED,
    Plot,
    plot,
    scatter,
    whiskers,
)
from harmonrank.table import table_of

_ROW = 26
_EVERY = ".4f"


def leaderboard_plots(facts: Facts) -> list[Plot]:
    """AUC-sum with intervals and the ceiling; in a world also the regret on a log scale."""
    qualities, ceiling = facts.board.qualities, facts.board.ceiling
    if not qualities:
        return []
    names, sums = list(qualities), [quality.auc_sum for quality in qualities.values()]
    values, lows, highs = zip(*((s.estimate, s.low, s.high) for s in sums), strict=True)
    bars = scatter(
        "by labels, 95 % interval",
        values,
        names,
        "%{y}<br>AUC-sum by labels %{x:.4f}",
        error_x=whiskers(values, lows, highs, color=MUTED),
        marker={"color": MUTED, "size": 7, "symbol": "line-ns-open", "line": {"width": 2}},
    )
    known = ceiling is not None
    if not known:
        bars["marker"] = {"color": MUTED, "size": 1}
    dots = scatter(
        "exact, by true probabilities" if known else "AUC-sum",
        [quality.total for quality in qualities.values()],
        names,
        "%{y}<br>AUC-sum %{x:.4f}",
        marker={"size": 11, "color": [ACCENT if n == facts.focus else INK for n in names]},
    )
    plots = [
        plot(
            "leaderboard",
            "AUC-sum on the test rows" + " and the best possible" * known,
            [bars, dots],
            table_of(
                ("method", "AUC-sum", "low", "high"),
                zip(names, values, lows, highs, strict=True),
                dict.fromkeys(("AUC-sum", "low", "high"), _EVERY),
            ),
            x={"title": "AUC-sum (no unit)"},
            y={"autorange": "reversed", "showgrid": False},
            height=140 + _ROW * len(names),
            wide=not known,
            showlegend=known,
            legend={**LEGEND, "y": 1.12},
            **({} if ceiling is None else ceiling_line(ceiling)),
        )
    ]
    if known:
        regrets = {name: {"regret": q.regret or 0.0} for name, q in qualities.items()}
        plots.append(regret_plot("Regret: what is still to be had", regrets, facts.focus))
    return plots


def auc_plots(facts: Facts) -> list[Plot]:
    """One panel per objective: the AUC of every method as a bar that starts at chance."""
    qualities = facts.board.qualities
    found = {name: quality.auc for name, quality in qualities.items()}
    areas = {
        o: {name: (auc[o].estimate, auc[o].low, auc[o].high) for name, auc in found.items()}
        for o in facts.board.objectives
    }
    return auc_bars("auc", areas, facts.focus) if qualities else []


def auc_bars(
    name: str, areas: Mapping[str, Mapping[str, Sequence[float]]], focus: str | None
) -> list[Plot]:
    """Draw a panel per objective of what each way to fuse has: AUC, low and high."""
    every = [value for each in areas.values() for found in each.values() for value in found]
    ends = [min([0.5, *every]) - 0.01, max(every) + 0.01]
    return [
        _auc_panel(f"{name}-{objective}", objective, found, focus, ends)
        for objective, found in areas.items()
    ]


def _auc_panel(
    name: str,
    objective: str,
    areas: Mapping[str, Sequence[float]],
    focus: str | None,
    ends: Sequence[float],
) -> Plot:
    names = list(areas)
    values, lows, highs = zip(*areas.values(), strict=True)
    bars = {
        "type": "bar",
        "orientation": "h",
        "base": 0.5,
        "x": [value - 0.5 for value in values],
        "y": names,
        "customdata": values,
        "marker": {"color": [ACCENT if each == focus else MUTED for each in names]},
        "error_x": whiskers(values, lows, highs, thickness=1.2, width=3, color=INK),
        "hovertemplate": "%{y}<br>AUC %{customdata:.4f}<extra></extra>",
    }
    return plot(
        name,
        objective,
        [bars],
        table_of(
            ("method", "AUC", "low", "high"),
            tuple((each, *found) for each, found in areas.items()),
            dict.fromkeys(("AUC", "low", "high"), _EVERY),
        ),
        x={"title": "AUC (½ is chance)", "range": list(ends)},
        y={"autorange": "reversed", "showgrid": False},
        height=100 + _ROW * len(names),
        showlegend=False,
    )
