"""Sections of a report: what each says in words, its tables and its charts."""

__all__ = ["Section", "objective_legend", "sections"]

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harmonrank.evaluation import Leaderboard
from harmonrank.evaluation.baseline import TODAY
from harmonrank.reports import figures
from harmonrank.reports.facts import Facts
from harmonrank.reports.plots import DASHES, MUTED, PALETTE, Plot
from harmonrank.reports.stability import PSI_DRIFTED, PSI_MOVED
from harmonrank.reports.tables import (
    calibration_table,
    context_table,
    drift_table,
    objective_table,
    prediction_table,
    upstream_table,
    volume_table,
)
from harmonrank.support.table import Table

_SHOWN_METHODS = 5


@dataclass(frozen=True)
class Section:
    """One part of the page.

    Attributes:
        lead: What to look for, in a sentence or two.
        tables: Shown as they are; the numbers behind the plots are folded away.
        legend: Names with their colour, their dash or the sign of their mark, and whether they are
            shown at first; a click toggles a name in all plots of the section.
        picks: What is said of each point that has an id, when it is clicked or its number typed.
    """

    key: str
    title: str
    lead: str
    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    legend: tuple[tuple[str, str, str, bool], ...] = ()
    picks: Mapping[str, str] = field(default_factory=dict)


def sections(facts: Facts) -> list[Section]:
    """Return the sections that the facts can fill, in order."""
    found = [replace(s, tables=tuple(t for t in s.tables if t.rows)) for s in _all(facts)]
    return [s for s in found if s.plots or s.tables or s.notes]


def _all(facts: Facts) -> Iterator[Section]:
    yield _leaderboard(facts)
    yield _scores(facts)
    yield Section(
        "objectives",
        "Each objective",
        "How well the one fused score ranks each objective, and how well the objective's own score "
        "does alone. Bars start at ½, where a ranking is no better than chance. By test labels; "
        "whiskers are 95 % intervals.",
        tuple(figures.auc_plots(facts)),
    )
    formula = "by formula, w/(π(1−π)), the rarer, the heavier"
    if facts.board.value_k is not None:
        formula = "what an event is worth"
    yield Section(
        "weights",
        "What moves the fused score",
        f"The first bar is the weight of a unit of probability: {formula}. The others are "
        "measured: each score moves from its 10th to its 90th percentile while the others rest at "
        "their medians; shares of the fused score's movement.",
        tuple(figures.pull_plot(facts)),
        legend=objective_legend(facts.board.objectives),
    )
    yield Section(
        "context",
        f"The same by context: {facts.focus}",
        "Whose scores count, for whom: bars of different shape are personalisation.",
        tuple(figures.context_plots(facts)),
        legend=objective_legend(facts.board.objectives),
    )
    yield Section(
        "responses",
        "Learned responses",
        "How the fused score answers when one score moves and the others rest at their medians, "
        "mean over contexts. Unit: standard deviations (sd) of the method's fused score.",
        tuple(figures.response_plots(facts)),
        legend=_legend(facts, [n for n, f in facts.methods.items() if f.response]),
    )
    yield _tradeoffs(facts)
    yield _relations(facts)
    yield _calibration(facts)
    yield Section(
        "training",
        "Training",
        "Validation AUC-sum decides which epoch is kept. Items outside the gradient teach nothing: "
        "a share near 0 says that ranks are too hard.",
        tuple(figures.training_plots(facts)),
        legend=_legend(facts, [n for n, f in facts.methods.items() if f.epochs]),
    )
    yield Section(
        "drift",
        "Drift of scores",
        "Grey: training rows. Blue: test rows. The population stability index (PSI) calls a score "
        f"stable below {PSI_MOVED}, drifted above {PSI_DRIFTED}; KS is the largest distance of the "
        "two distribution functions.",
        tuple(figures.drift_plots(facts)),
        (drift_table(facts),),
    )
    yield _data(facts)


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
        tuple(figures.leaderboard_plots(facts)) if compared else (),
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
    if figures.attention_methods(facts):
        lead += (
            " Attention A_r is what the paper's network made of these relations: how much the "
            "objective of a row attends to that of a column; each row adds up to 1."
        )
    elif any(method.attention for method in facts.methods.values()):
        lead += " The attention of the paper's network is uniform here, so it is not shown."
    plots = tuple(figures.correlation_plots(facts))
    return Section("relations", "How objectives relate", lead, plots)


def _tradeoffs(facts: Facts) -> Section:
    lead = (
        f"One fit of {facts.focus}, weights moved from one objective to the other afterwards: no "
        "training. Crosses are the methods as fitted for all objectives together; a pointer on a "
        "mark reads its weights."
    )
    if any(t.best for t in facts.tradeoffs):
        lead += " Dashed: the best that any fusion can do."
    plots = tuple(figures.tradeoff_plots(facts))
    return Section("trade-offs", "Trade-offs", lead, plots, (volume_table(facts),))


def _calibration(facts: Facts) -> Section:
    told = [n for n, f in facts.methods.items() if f.calibration]
    upstream = ("upstream scores", MUTED, "dash", True)
    return Section(
        "calibration",
        "Calibration",
        "On the dotted line a predicted probability is what comes true. Bins hold equal sums of "
        f"predicted probability; whiskers are 95 % intervals of {facts.focus}. The table shows "
        "the mean distance from the line, relative to how common the objective is; chance alone "
        "keeps rare objectives off the line.",
        tuple(figures.calibration_plots(facts)),
        (calibration_table(facts),),
        legend=(*_legend(facts, told), upstream) if told else (),
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


def _legend(facts: Facts, names: list[str]) -> tuple[tuple[str, str, str, bool], ...]:
    """Show the best few methods and the one looked at; the others wait for a click."""
    shown = {*names[:_SHOWN_METHODS], facts.focus}
    styles = {n: figures.style(facts, n) for n in names}
    return tuple((n, styles[n]["color"], styles[n]["dash"], n in shown) for n in names)


def objective_legend(objectives: Sequence[str]) -> tuple[tuple[str, str, str, bool], ...]:
    """Return the colour of each objective, the same in every chart."""
    colors = len(PALETTE)
    return tuple(
        (o, PALETTE[m % colors], DASHES[m // colors % len(DASHES)], True)
        for m, o in enumerate(objectives)
    )
