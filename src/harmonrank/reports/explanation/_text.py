"""Explanations as tables for the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from harmonrank.fusion import Method
from harmonrank.fusion.influence import Influence
from harmonrank.model.linear.fading import fading_words
from harmonrank.reports.explanation._model import ModelExplanation
from harmonrank.reports.explanation._row import RowExplanation, ordinal
from harmonrank.support.table import Column, Style, Table

_EXPLAINED = {
    "value": "g",
    "weight": ".4g",
    "prevalence": ".3%",
    "effective_weight": ".1%",
    "influence": ".1%",
    "noise_share": ".0%",
    "effects": ".0f",
    "fading": ".1f",
}
_BARS = "▁▂▃▄▅▆▇█"
_SPARK = 16


def learned_table(
    model: Method,
    facts: Mapping[str, Mapping[str, float]],
    influence: Influence | None = None,
) -> Table:
    """Return what a model learned of each objective, an objective per row, and its health.

    Influence on the order stands in place of effective weights, where it is known. Below are the
    chances that places are looked at, where its feedback was corrected for them.
    """
    if influence is not None:
        others = {name: each for name, each in facts.items() if name != "effective_weight"}
        facts = {"influence": influence.shares, **others}
    columns = [Column(f.replace("_", " "), _EXPLAINED.get(f, ".3f"), widest=10) for f in facts]
    rows = [(name, *(values[name] for values in facts.values())) for name in facts["weight"]]
    note = "Effective weight: w/(π(1−π)), what a unit of probability counts."
    if influence is not None:
        note = f"Influence on the order: share of the fused score's variance {influence.where}."
    elif model.fuser.optimises == "requests":
        note = (
            "Fitted for AUC within requests. Effective weight: what a unit of probability counts "
            "in a usual row."
        )
    if "value" in facts and influence is None:
        note = "Ranked by expected value: a value v is the weight vπ(1−π), effectively v."
    health = getattr(model.state, "health", None)
    notes = [note] if health is None else [note, health.words(), health.warning() or ""]
    if model.schema.examination:
        looked = model.schema.examination.items()
        chances = ", ".join(f"{place} {chance:.2f}" for place, chance in looked)
        notes.append(f"Chance that each place is looked at: {chances}.")
    if "fading" in facts:
        notes.append(fading_words(facts["fading"]))
    head, shown = Column("objective"), tuple(n for n in notes if n)
    return Table((head, *columns), tuple(rows), title=f"Method: {model.name}", notes=shown)


def response_table(explained: ModelExplanation) -> Table:
    """Return a row per objective: how the fused score answers as its score moves."""
    columns = (
        Column("objective"),
        Column("from", ".3%"),
        Column("to", ".3%"),
        Column("fused score (sd)", align="right"),
        Column("response"),
    )
    rows = [
        (
            name,
            curve.x[0],
            curve.x[-1],
            f"{curve.y[0]:+.2f} … {curve.y[-1]:+.2f}",
            sparkline(curve.y),
        )
        for name, curve in zip(explained.names, explained.responses, strict=True)
    ]
    note = f"The fused score as that score moves and others rest, on {explained.rows:,} rows."
    return Table(columns, tuple(rows), title="How the fused score answers", notes=(note,))


def context_pull_table(explained: ModelExplanation) -> Table:
    """Return a row per context value: what each score moves there."""
    columns = (
        Column("context", heading=True),
        Column("value"),
        *(Column(name, ".1%") for name in explained.names),
    )
    rows = tuple(
        (column, value, *shares)
        for column, values in explained.by_context.items()
        for value, shares in values.items()
    )
    note = "Each score goes from its 10th to its 90th percentile; shares of what that moves."
    return Table(columns, rows, title="What each score moves, by context", notes=(note,))


def row_table(row: RowExplanation) -> Table:
    """Return a row per objective: what it adds to the fused score; then the score itself."""
    place = f"Row {row.row:,}: {ordinal(row.place)} of {row.candidates:,}"
    title = ", ".join([place, *(f"{name} {value}" for name, value in row.context.items())])
    said = tuple(row.sentences())[1:]
    adds, p, shares, usual = row.adds, row.probabilities, row.shares, row.usual
    if adds is None or p is None or shares is None or usual is None:
        plain = (Column("objective"), Column("score", ".4g"))
        return Table(plain, tuple(row.scores.items()), title, notes=said)
    columns = (
        Column("objective"),
        Column("score", ".4g"),
        Column("probability", ".4g"),
        Column("adds", ".4f"),
        Column("share", ".1%"),
        Column("usual here", ".4f"),
        Column("more", "+.4f"),
    )
    total = sum(usual.values())
    rows: list[tuple[Any, ...]] = []
    for name, score in row.scores.items():
        more = adds[name] - usual[name]
        rows.append((name, score, p[name], adds[name], shares[name], usual[name], more))
    rows.append(("fused", "", "", row.fused, "", total, row.fused - total))
    adding = "w p/(π(1−π))" if row.optimises == "all" else "w κ p, as fitted for requests"
    about = f"Adds: {adding}, together the fused score. Usual here: mean of its candidates."
    last: dict[int, Style] = {len(rows) - 1: "bold"}
    return Table(columns, tuple(rows), title, emphasis=last, notes=(about, *said))


def sparkline(values: Sequence[float]) -> str:
    """Return a curve as a few small bars.

    >>> sparkline([0.0, 0.5, 1.0])
    '▁▅█'
    """
    step = max(len(values) / _SPARK, 1.0)
    some = [values[min(int(i * step), len(values) - 1)] for i in range(min(_SPARK, len(values)))]
    some[-1] = values[-1]
    low, high = min(some), max(some)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[int((value - low) * scale + 0.5)] for value in some)
