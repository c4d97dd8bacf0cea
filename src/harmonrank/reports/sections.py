"""The page of a comparison: what each section says in words, its tables and its charts."""

__all__ = ["Section", "effect_sections", "html_page", "sections", "write_html"]

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harmonrank.evaluation import Leaderboard
from harmonrank.evaluation.baseline import TODAY
from harmonrank.fusion import Quality
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
from harmonrank.reports.html import Card, LegendEntry, Section, page, write_page
from harmonrank.reports.model_facts import Curve
from harmonrank.reports.plots import MUTED, styles
from harmonrank.reports.stability import PSI_DRIFTED, PSI_MOVED
from harmonrank.reports.tables import (
    calibration_table,
    context_table,
    drift_table,
    objective_table,
    prediction_table,
    upstream_table,
)

_SHOWN_METHODS = 5
_EFFECTS = "Effective weights, and what moves the fused score"


def write_html(facts: Facts, path: str | Path) -> None:
    """Write the page of some facts."""
    write_page(html_page(facts), path)


def html_page(facts: Facts) -> str:
    """Return the page with its style, scripts and numbers inlined.

    Raises:
        DependencyError: Plotly, which draws the charts, is not installed.
    """
    verdict = facts.board.verdict
    sentence = "" if verdict is None else verdict.sentence
    return page(facts.title, facts.run, _summary(facts), sections(facts), sentence)


def _summary(facts: Facts) -> list[Card]:
    """Return the few numbers that a hurried reader takes away."""
    board, rows = facts.board, facts.data.rows
    cards: list[Card] = []
    for name, best in list(board.qualities.items())[:1]:
        tied = sum(entry.tied for entry in board.entries[1:])
        among = f"tied with {tied} other{'s' * (tied > 1)}" if tied else ""
        cards.append(("Best" if len(board.entries) > 1 else "Method", name, among))
        if board.value_k is not None:
            cards += _value_cards(board, name, best)
            continue
        about = str(best.auc_sum) if best.regret is None else "exact"
        cards.append(("AUC-sum", f"{best.total:.4f}", about))
        if best.ceiling is not None and best.regret is not None:
            above = best.ceiling - sum(best.weights.values()) / 2
            reached = 1 - best.regret / above if above > 0 else float("nan")
            cards.append(("Ceiling", f"{best.ceiling:.4f}", f"regret {best.regret:.4f}"))
            cards.append(("Reached", f"{reached:.1%}", "of the way from chance to the ceiling"))
    trained = f"{rows['train']:,} training rows" if "train" in rows else ""
    cards.append(("Test rows", f"{rows['test']:,}", trained))
    if facts.data.warnings:
        cards.append(("Warnings", str(len(facts.data.warnings)), "about the rows, see below"))
    return cards


def _value_cards(board: Leaderboard, name: str, quality: Quality) -> list[Card]:
    """Return what the first is worth, of those that rank by value."""
    value, total, best = quality.value, board.totals[name], board.best_possible
    assert value is not None
    about = f"per request, {value.mean}" if best is None else "per request, exact"
    cards: list[Card] = [(f"Value at {value.k}", f"{total:.4f}", about)]
    if best is not None:
        cards.append(("Ceiling", f"{best:.4f}", f"regret {best - total:.4f}"))
    return cards


def sections(facts: Facts) -> list[Section]:
    """Return the sections that the facts can fill, in order."""
    return [section for section in _all(facts) if section.has_content]


def _all(facts: Facts) -> Iterator[Section]:
    yield _leaderboard(facts)
    yield _scores(facts)
    yield Section(
        "objectives",
        "Each objective",
        "How well the one fused score ranks each objective, and how well the objective's own score "
        "does alone. Bars start at ½, where a ranking is no better than chance. By test labels; "
        "whiskers are 95 % intervals.",
        auc_plots(facts),
    )
    formula = "w/(π(1−π))" if facts.board.value_k is None else "value of an event"
    effective = [o.effective_weight for o in facts.data.objectives]
    yield from effect_sections(
        facts.board.objectives,
        {formula: effective, **{n: f.pulls for n, f in facts.methods.items() if f.pulls}},
        facts.context_pulls,
        {n: f.response for n, f in facts.methods.items() if f.response},
        method_styles(facts),
        facts.focus,
    )
    yield _tradeoffs(facts)
    yield _relations(facts)
    yield _calibration(facts)
    yield Section(
        "training",
        "Training",
        "Validation AUC-sum decides which epoch is kept. Items outside the gradient teach nothing: "
        "a share near 0 says that ranks are too hard.",
        training_plots(facts),
        legend=_method_legend(facts, [n for n, f in facts.methods.items() if f.epochs]),
    )
    yield Section(
        "drift",
        "Drift of scores",
        "Grey: training rows. Blue: test rows. The population stability index (PSI) calls a score "
        f"stable below {PSI_MOVED}, drifted above {PSI_DRIFTED}; KS is the largest distance of the "
        "two distribution functions.",
        drift_plots(facts),
        (drift_table(facts),),
    )
    yield _data(facts)


def effect_sections(
    objectives: Sequence[str],
    shares: Mapping[str, Sequence[float]],
    by_context: Mapping[str, Mapping[str, Sequence[float]]],
    responses: Mapping[str, Sequence[Curve]],
    looks: Mapping[str, dict[str, Any]],
    focus: str | None,
) -> Iterator[Section]:
    """Yield what moves the fused score, for whom, and how it answers.

    Args:
        objectives: Their names.
        shares: What counts by formula, under the formula; then what each method's scores move.
        by_context: What scores move by column and value, of the method that is looked at.
        responses: Of each method, a curve per objective.
        looks: Colour and dash of each method.
        focus: The method that is looked at.
    """
    legend = _objective_legend(objectives)
    formula = next(iter(shares))
    yield Section(
        "weights",
        "What moves the fused score",
        f"The first bar is what a unit of probability counts by formula, {formula}. The others are "
        "measured: each score moves from its 10th to its 90th percentile while the others rest at "
        "their medians; shares of the fused score's movement.",
        [share_plot(objectives, "weights", _EFFECTS, shares, wide=True)],
        legend=legend,
    )
    yield Section(
        "context",
        f"The same by context: {focus}",
        "Whose scores count, for whom: bars of different shape are personalisation.",
        context_plots(objectives, by_context),
        legend=legend,
    )
    bold = {n: looks[n] | {"width": 3 if n == focus else 2} for n in responses}
    yield Section(
        "responses",
        "Learned responses",
        "How the fused score answers when one score moves and the others rest at their medians, "
        "mean over contexts. Unit: standard deviations (sd) of the method's fused score.",
        response_panels(objectives, responses, bold),
        legend=_legend(responses, looks, focus) if len(responses) > 1 else (),
    )


def _leaderboard(facts: Facts) -> Section:
    board = facts.board
    compared = len(board.entries) > 1
    lead = (
        "AUC-sum is the weighted sum of the objectives' AUCs with its 95 % interval, requests "
        "being the sampling unit where they are known."
        if board.ceiling is None
        else "This log comes from a simulated world, so the best possible result is known: the "
        "ceiling. AUC-sum and AUCs here are exact, by true probabilities; the 95 % "
        "interval is what the test labels alone can tell."
    )
    if board.value_k is not None:
        lead = _value_lead(board)
    if any(entry.tied for entry in board.entries[1:]):
        lead += " “=”: the test labels cannot tell it from the best (paired bootstrap)."
    if board.baseline is not None:
        lead += f" “{TODAY}” is what ranks now: {board.baseline.text}. {board.baseline.note or ''}"
    failed = [f"{e.name} failed: {e.error}" for e in board.entries if e.error]
    return Section(
        "leaderboard",
        "Leaderboard" if compared else "Result",
        lead.strip(),
        leaderboard_plots(facts) if compared else (),
        (replace(board.to_table(), title="", alarms=(), notes=()),) if board.qualities else (),
        (*failed, *board.warnings),
    )


def _value_lead(board: Leaderboard) -> str:
    k = board.value_k
    lead = (
        f"Rows are ranked by their expected value. Value at {k} is what the events among the first "
        f"{k} of a request are worth, with its 95 % interval by a bootstrap over requests."
    )
    if board.best_possible is None:
        return lead
    return f"{lead} Values and AUCs here are exact, by true probabilities, and so is the ceiling."


def _scores(facts: Facts) -> Section:
    lead = (
        "How well each score alone ranks its own objective on the test rows; the best that any "
        "score can do, where the truth is known. ECE is how far the score is from the share that "
        "comes true."
    )
    if facts.prediction:
        return Section("scores", "The scores", lead, tables=(prediction_table(facts.prediction),))
    lead = (
        "How well each upstream score ranks by itself: its own objective, and all of them if it "
        "were the fused score."
    )
    return Section("scores", "The scores", lead, tables=(upstream_table(facts),))


def _relations(facts: Facts) -> Section:
    lead = "Orange pulls apart, blue goes together. The diagonal, always 1, is left blank."
    if facts.attention:
        lead += (
            " Attention A_r is what the paper's network made of these relations: how much the "
            "objective of a row attends to that of a column; each row adds up to 1."
        )
    elif any(method.attention for method in facts.methods.values()):
        lead += " The attention of the paper's network is uniform here, so it is not shown."
    return Section("relations", "How objectives relate", lead, correlation_plots(facts))


def _tradeoffs(facts: Facts) -> Section:
    lead = (
        f"One fit of {facts.focus}, its weights moved over all trade-offs: no point was trained. "
        "The line joins what is best for these two. Marks are the methods as fitted for all "
        "objectives together; a pointer on a point or a mark reads its weights."
    )
    if facts.frontier is not None:
        dashed = "Dashed: the best that any fusion can do. " * (facts.frontier.best is not None)
        lead += f" {dashed}{volume_words(facts.frontier)}"
    plots, legend = tradeoff_plots(facts), tradeoff_legend(facts)
    return Section("trade-offs", "Trade-offs", lead, plots, legend=legend)


def _calibration(facts: Facts) -> Section:
    told = [n for n, f in facts.methods.items() if f.calibration]
    upstream = (UPSTREAM, MUTED, "dash", True)
    return Section(
        "calibration",
        "Calibration",
        "On the dotted line a predicted probability is what comes true. Bins hold equal sums of "
        f"predicted probability; whiskers are 95 % intervals of {facts.focus}. The table shows "
        "the mean distance from the line, relative to how common the objective is; chance alone "
        "keeps rare objectives off the line.",
        calibration_plots(facts),
        (calibration_table(facts),),
        legend=[*_method_legend(facts, told), upstream],
    )


def _data(facts: Facts) -> Section:
    data = facts.data
    parts = [f"{n:,} {name} rows" for name, n in data.rows.items()]
    lead = ", ".join(parts) + "."
    if data.requests is not None:
        lead += (
            f" {data.requests:,} test requests; one is one-class for an objective if all its rows "
            "or none are positive."
        )
    tables = (objective_table(facts), context_table(facts))
    # What was found wrong with the rows stands beside the result already.
    others = (line for line in data.warnings if line not in facts.board.warnings)
    return Section("data", "Data", lead, tables=tables, notes=(*facts.caveats, *others))


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
