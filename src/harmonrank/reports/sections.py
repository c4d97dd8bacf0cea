"""The page of a comparison: what each section says in words, its tables and its charts."""

__all__ = ["Section", "effect_sections", "html_page", "sections", "write_html"]

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harmonrank.evaluation.baseline import TODAY
from harmonrank.fusion.influence import Influence
from harmonrank.reports.facts import Facts
from harmonrank.reports.figures.board import auc_plots, leaderboard_plots
from harmonrank.reports.figures.methods import (
    UPSTREAM,
    calibration_plots,
    context_plots,
    method_styles,
    response_panels,
    share_plot,
)
from harmonrank.reports.figures.rows import correlation_plots, drift_plots, training_plots
from harmonrank.reports.figures.tradeoffs import tradeoff_legend, tradeoff_plots
from harmonrank.reports.frontier import volume_words
from harmonrank.reports.html import Card, LegendEntry, Section, page, section, write_page
from harmonrank.reports.model_facts import Curve
from harmonrank.reports.plots import MUTED, styles
from harmonrank.reports.stability import PSI_DRIFTED, PSI_MOVED
from harmonrank.reports.tables import (
    calibration_table,
    context_table,
    drift_table,
    lift_table,
    objective_table,
    prediction_table,
    upstream_table,
)

_SHOWN_METHODS = 5
_EFFECTS = "Influence on the order, effective weights, and what moves the fused score"


def write_html(facts: Facts, path: str | Path) -> None:
    """Write the page of some facts."""
    write_page(html_page(facts), path)


def html_page(facts: Facts) -> str:
    """Return the page with its style, scripts and numbers inlined.

    Raises:
        DependencyError: Plotly, which draws the charts, is not installed.
    """
    return page(facts.title, facts.run, _summary(facts), sections(facts), facts.board.headline)


def _summary(facts: Facts) -> list[Card]:
    """Return the few numbers that a hurried reader takes away."""
    board, rows = facts.board, facts.data.rows
    cards: list[Card] = []
    for name, quality in list(board.qualities.items())[:1]:
        tied = sum(entry.tied for entry in board.entries[1:])
        among = f"tied with {tied} other{'s' * (tied > 1)}" if tied else ""
        cards.append(("Best" if len(board.entries) > 1 else "Method", name, among))
        total, best, by_value = board.totals[name], board.best_possible, board.value_k is not None
        interval = (
            quality.value.interval if by_value and quality.value else quality.decisive.auc_sum
        )
        about = "per request, " * by_value + (str(interval) if best is None else "exact")
        cards.append((board.measure[:1].upper() + board.measure[1:], f"{total:.4f}", about))
        if best is not None:
            cards.append(("Ceiling", f"{best:.4f}", f"regret {best - total:.4f}"))
            chance = sum(quality.weights.values()) / 2
            if not by_value and best > chance:
                reached = (total - chance) / (best - chance)
                cards.append(("Reached", f"{reached:.1%}", "of the way from chance to the ceiling"))
    trained = f"{rows['train']:,} training rows" if "train" in rows else ""
    cards.append(("Test rows", f"{rows['test']:,}", trained))
    if facts.data.warnings:
        cards.append(("Warnings", str(len(facts.data.warnings)), "about the rows, see below"))
    return cards


def sections(facts: Facts) -> list[Section]:
    """Return the sections that the facts can fill, in order."""
    return [each for each in _all(facts) if each.has_content]


def _all(facts: Facts) -> Iterator[Section]:
    yield _leaderboard(facts)
    own = bool(facts.prediction)
    scores = prediction_table(facts.prediction) if own else upstream_table(facts)
    yield section("scores", tables=[scores], own=own, board=facts.board)
    yield section("objectives", auc_plots(facts), board=facts.board)
    yield from effect_sections(
        facts.board.objectives,
        facts.board.influence,
        facts.formula,
        [o.effective_weight for o in facts.data.objectives],
        {n: f.pulls for n, f in facts.methods.items() if f.pulls},
        facts.context_pulls,
        {n: f.response for n, f in facts.methods.items() if f.response},
        method_styles(facts),
        facts.focus,
    )
    yield section(
        "trade-offs",
        tradeoff_plots(facts),
        legend=tradeoff_legend(facts),
        focus=facts.focus,
        frontier=facts.frontier,
        volumes="" if facts.frontier is None else volume_words(facts.frontier),
    )
    yield section(
        "relations", correlation_plots(facts), attention=facts.attention, methods=facts.methods
    )
    told = _method_legend(facts, [n for n, f in facts.methods.items() if f.calibration])
    upstream = (UPSTREAM, MUTED, "dash", True)
    legend, table = [*told, upstream], calibration_table(facts)
    yield section(
        "calibration", calibration_plots(facts), [table], legend=legend, focus=facts.focus
    )
    trained = _method_legend(facts, [n for n, f in facts.methods.items() if f.epochs])
    yield section("training", training_plots(facts), legend=trained)
    table = drift_table(facts)
    yield section("drift", drift_plots(facts), [table], moved=PSI_MOVED, drifted=PSI_DRIFTED)
    # What was found wrong with the rows stands beside the result already.
    others = [line for line in facts.data.warnings if line not in facts.board.warnings]
    tables = [objective_table(facts), context_table(facts)]
    yield section("data", tables=tables, notes=[*facts.caveats, *others], data=facts.data)


def _leaderboard(facts: Facts) -> Section:
    board = facts.board
    plots = leaderboard_plots(facts) if len(board.entries) > 1 else ()
    table = replace(board.to_table(), title="", alarms=(), notes=())
    notes = [f"{e.name} failed: {e.error}" for e in board.entries if e.error]
    notes += board.warnings
    tables = [table, lift_table(facts)] if board.qualities else []
    return section("leaderboard", plots, tables, notes=notes, board=board, today=TODAY)


def effect_sections(
    objectives: Sequence[str],
    influence: Influence | None,
    formula: str,
    effective: Sequence[float],
    pulls: Mapping[str, Sequence[float]],
    by_context: Mapping[str, Mapping[str, Sequence[float]]],
    responses: Mapping[str, Sequence[Curve]],
    looks: Mapping[str, dict[str, Any]],
    focus: str | None,
) -> Iterator[Section]:
    """Yield what moves the fused score, for whom, and how it answers.

    Args:
        objectives: Their names.
        influence: Of each objective on the order, where it is known.
        formula: Of the effective weights.
        effective: These, as shares of 1.
        pulls: What scores move, of each method.
        by_context: What scores move by column and value, of the method that is looked at.
        responses: Of each method, a curve per objective.
        looks: Colour and dash of each method.
        focus: The method that is looked at.
    """
    legend, first = _objective_legend(objectives), {}
    if influence is not None:
        first = {"influence on the order": list(influence.shares.values())}
    shares = {**first, formula: effective, **pulls}
    weights = share_plot(objectives, "weights", _EFFECTS, shares, wide=True)
    yield section("weights", [weights], legend=legend, formula=formula, influence=influence)
    yield section("context", context_plots(objectives, by_context), legend=legend, focus=focus)
    bold = {n: looks[n] | {"width": 3 if n == focus else 2} for n in responses}
    names = _legend(responses, looks, focus) if len(responses) > 1 else ()
    yield section("responses", response_panels(objectives, responses, bold), legend=names)


def _legend(
    names: Iterable[str], looks: Mapping[str, Mapping[str, str]], focus: str | None
) -> list[LegendEntry]:
    """Show the best few methods and the one looked at; the others wait for a click."""
    return [
        (name, looks[name]["color"], looks[name]["dash"], place < _SHOWN_METHODS or name == focus)
        for place, name in enumerate(names)
    ]


def _method_legend(facts: Facts, names: Sequence[str]) -> list[LegendEntry]:
    return _legend(names, method_styles(facts), facts.focus)


def _objective_legend(objectives: Iterable[str]) -> tuple[LegendEntry, ...]:
    """Return the colour of each objective, the same in every chart."""
    return tuple((o, look["color"], look["dash"], True) for o, look in styles(objectives).items())
