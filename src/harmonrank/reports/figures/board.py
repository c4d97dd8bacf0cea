"""Charts of the leaderboard and of each objective."""

__all__ = ["auc_bars", "auc_plots", "leaderboard_plots"]

from collections.abc import Mapping, Sequence
from typing import Any

from harmonrank.evaluation.baseline import TODAY
from harmonrank.evaluation.verdict import relation_of
from harmonrank.reports import plots
from harmonrank.reports.facts import Facts
from harmonrank.support.table import table_of


def leaderboard_plots(facts: Facts) -> list[plots.Plot]:
    """Paired differences to what ranks today, or else to the best; ties are hollow."""
    board, measure = facts.board, facts.board.measure
    fine = [entry for entry in board.entries if entry.quality is not None]
    if len(fine) < 2:
        return []
    base = next((e for e in fine if board.baseline and e.name == TODAY), fine[0])
    gaps = {e.name: gap for e in fine if e is not base and (gap := e.minus(base)) is not None}
    tied = {name: relation_of(gap) == "tied" for name, gap in gaps.items()}
    values = [gap.estimate for gap in gaps.values()]
    lows, highs = [gap.low for gap in gaps.values()], [gap.high for gap in gaps.values()]
    colors = [
        plots.MUTED if tied[n] else plots.ACCENT if n == facts.focus else plots.INK for n in gaps
    ]
    dots = plots.scatter(
        "",
        values,
        list(gaps),
        f"%{{y}}<br>%{{x:+.4f}} to {plots.hover_text(base.name)}<br>%{{text}}",
        text=[f"{g.low:+.4f} to {g.high:+.4f}{', a tie' * tied[n]}" for n, g in gaps.items()],
        error_x=plots.whiskers(values, lows, highs, color=plots.MUTED),
        marker={
            "size": 11,
            "color": colors,
            "symbol": ["circle-open" if tie else "circle" for tie in tied.values()],
            "line": {"width": 2, "color": colors},
        },
    )
    rows = [(n, g.estimate, g.low, g.high, relation_of(g)) for n, g in gaps.items()]
    columns = ("difference", "low", "high")
    title = f"{measure[:1].upper()}{measure[1:]} against {base.name}"
    return [
        plots.plot(
            "difference",
            f"{title}: paired differences, 95 % intervals; hollow is a tie",
            [dots],
            table_of(("method", *columns, "verdict"), rows, dict.fromkeys(columns, "+.4f")),
            x={"title": f"{measure} − that of {base.name}", "tickformat": "+.3~f"},
            y={**plots.ROWS, "showgrid": True},
            height=120 + plots.ROW * len(gaps),
            wide=True,
            shapes=[plots.upright(0, color=plots.INK)],
        )
    ]


def auc_plots(facts: Facts) -> list[plots.Plot]:
    """One panel per objective: the AUC of every method as a bar that starts at chance."""
    board = facts.board
    intervals = {e.name: e.intervals for e in board.entries if e.quality is not None}
    areas: dict[str, dict[str, tuple[float, ...]]] = {}
    for o in board.objectives:
        areas[o] = {
            n: (each[o].estimate, each[o].low, each[o].high) for n, each in intervals.items()
        }
        if o in board.upstream:
            alone = board.upstream[o].decisive(board.criterion)
            label, exact = alone.auc[o], alone.areas[o]
            # By the truth, as all others are, of which the interval of the labels is none.
            ends = (label.low, label.high) if alone.exact_auc is None else (exact, exact)
            areas[o]["own score"] = (exact, *ends)
    titles = {objective: board.title(objective) for objective in board.objectives}
    return auc_bars("auc", areas, facts.focus, titles) if board.qualities else []


def auc_bars(
    name: str,
    areas: Mapping[str, Mapping[str, Sequence[float]]],
    focus: str | None,
    titles: Mapping[str, str] | None = None,
) -> list[plots.Plot]:
    """Draw a panel per objective of what each way to fuse has: AUC, low and high."""
    every = [value for each in areas.values() for ends in each.values() for value in ends]
    known = [value for value in every if value == value]
    ends = [min([0.5, *known]) - 0.01, max([0.5, *known]) + 0.01]
    columns = ("AUC", "low", "high")
    return [
        plots.plot(
            f"{name}-{objective}",
            (titles or {}).get(objective, objective),
            [_auc_bars(entries, focus)],
            table_of(
                ("method", *columns),
                [(each, *values) for each, values in entries.items()],
                dict.fromkeys(columns, ".4f"),
            ),
            x={"title": "AUC (½ is chance)", "range": ends},
            y=plots.ROWS,
            height=100 + plots.ROW * len(entries),
        )
        for objective, entries in areas.items()
    ]


def _auc_bars(areas: Mapping[str, Sequence[float]], focus: str | None) -> dict[str, Any]:
    values, lows, highs = zip(*areas.values(), strict=True)
    return plots.bars(
        "",
        list(areas),
        [value - 0.5 for value in values],
        "AUC %{customdata:.4f}",
        base=0.5,
        customdata=values,
        marker={"color": [plots.ACCENT if each == focus else plots.MUTED for each in areas]},
        error_x=plots.whiskers(values, lows, highs, thickness=1.2, width=3, color=plots.INK),
    )
