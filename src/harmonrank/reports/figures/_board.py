"""Charts of the leaderboard and of each objective."""

__all__ = ["auc_bars", "auc_plots", "leaderboard_plots"]

from collections.abc import Mapping, Sequence

from harmonrank.evaluation.baseline import TODAY
from harmonrank.evaluation.verdict import relation_of
from harmonrank.reports.facts import Facts
from harmonrank.reports.figures._common import zero_line
from harmonrank.reports.figures._regret import regret_plot
from harmonrank.reports.plots import ACCENT, INK, MUTED, Plot, hover_text, plot, scatter, whiskers
from harmonrank.support.table import table_of

_ROW = 26
_EVERY = ".4f"


def leaderboard_plots(facts: Facts) -> list[Plot]:
    """Paired differences to what ranks today, or else to the best; in a world also the regret."""
    board = facts.board
    plots = _difference_plot(facts)
    best = board.best_possible
    if best is not None and board.qualities:
        regrets = {name: {"regret": best - total} for name, total in board.totals.items()}
        title = "Regret: what is still to be had"
        plots.append(regret_plot(title, regrets, facts.focus, board.criterion))
    return plots


def _difference_plot(facts: Facts) -> list[Plot]:
    """Each method's AUC-sum, or value, minus that of one of them; ties are hollow."""
    board, criterion = facts.board, facts.board.criterion
    fine = [entry for entry in board.entries if entry.quality is not None]
    if len(fine) < 2:
        return []
    base = next((e for e in fine if board.baseline and e.name == TODAY), fine[0])
    gaps = {e.name: gap for e in fine if e is not base and (gap := e.minus(base)) is not None}
    tied = [relation_of(gap) == "tied" for gap in gaps.values()]
    names, values = list(gaps), [gap.estimate for gap in gaps.values()]
    lows, highs = [gap.low for gap in gaps.values()], [gap.high for gap in gaps.values()]
    colors = [
        MUTED if tie else ACCENT if name == facts.focus else INK
        for name, tie in zip(names, tied, strict=True)
    ]
    dots = scatter(
        "",
        values,
        names,
        f"%{{y}}<br>%{{x:+.4f}} to {hover_text(base.name)}<br>%{{text}}",
        text=[
            f"{low:+.4f} to {high:+.4f}{', a tie' * tie}"
            for low, high, tie in zip(lows, highs, tied, strict=True)
        ],
        error_x=whiskers(values, lows, highs, color=MUTED),
        marker={
            "size": 11,
            "color": colors,
            "symbol": ["circle-open" if tie else "circle" for tie in tied],
            "line": {"width": 2, "color": colors},
        },
    )
    rows = [
        (name, *ends, "tied" if tie else "ahead" if ends[0] > 0 else "behind")
        for name, tie, *ends in zip(names, tied, values, lows, highs, strict=True)
    ]
    columns = ("difference", "low", "high")
    title = criterion[:1].upper() + criterion[1:]
    return [
        plot(
            "difference",
            f"{title} against {base.name}: paired differences, 95 % intervals; hollow is a tie",
            [dots],
            table_of(("method", *columns, "verdict"), rows, dict.fromkeys(columns, "+.4f")),
            x={"title": f"{criterion} − that of {base.name}", "tickformat": "+.3~f"},
            y={"autorange": "reversed", "type": "category"},
            height=120 + _ROW * len(names),
            wide=board.best_possible is None,
            showlegend=False,
            shapes=[zero_line()],
        )
    ]


def auc_plots(facts: Facts) -> list[Plot]:
    """One panel per objective: the AUC of every method as a bar that starts at chance."""
    board = facts.board
    found = {name: quality.auc for name, quality in board.qualities.items()}
    areas = {
        o: {name: (auc[o].estimate, auc[o].low, auc[o].high) for name, auc in found.items()}
        for o in board.objectives
    }
    for objective, score in board.upstream.items():
        alone = score.auc
        areas[objective]["own score"] = (alone.estimate, alone.low, alone.high)
    titles = {objective: board.title(objective) for objective in board.objectives}
    return auc_bars("auc", areas, facts.focus, titles) if board.qualities else []


def auc_bars(
    name: str,
    areas: Mapping[str, Mapping[str, Sequence[float]]],
    focus: str | None,
    titles: Mapping[str, str] | None = None,
) -> list[Plot]:
    """Draw a panel per objective of what each way to fuse has: AUC, low and high."""
    every = [value for each in areas.values() for found in each.values() for value in found]
    known = [value for value in every if value == value]
    ends = [min([0.5, *known]) - 0.01, max([0.5, *known]) + 0.01]
    return [
        _auc_panel(
            f"{name}-{objective}", (titles or {}).get(objective, objective), found, focus, ends
        )
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
        y={"autorange": "reversed", "showgrid": False, "type": "category"},
        height=100 + _ROW * len(names),
        showlegend=False,
    )
