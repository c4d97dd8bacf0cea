"""An explanation as one HTML page, and as sections of others."""

__all__ = ["explanation_page"]

from collections.abc import Sequence
from typing import Any

from harmonrank.reports.explanation._model import ModelExplanation
from harmonrank.reports.explanation._row import RowExplanation, ordinal
from harmonrank.reports.explanation._text import row_table
from harmonrank.reports.facts import Run
from harmonrank.reports.figures import response_panels, share_plot
from harmonrank.reports.html import Card, page
from harmonrank.reports.plots import ACCENT, MUTED, PALETTE, Plot, hover_text, plot
from harmonrank.reports.sections import Section, objective_legend
from harmonrank.support.table import Table, table_of

_ROW = 26


def explanation_page(
    title: str,
    facts: Table,
    found: ModelExplanation,
    run: Run,
    row: RowExplanation | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Return the page.

    Args:
        title: Of the page.
        facts: What the model learned of each objective.
        found: What moves its fused score.
        run: How it was made.
        row: One row of them, explained first.
        notes: What cannot be said of this model.
    """
    parts = [] if row is None else [_row(row, notes)]
    parts += [Section("model", "The model", "What it learned of each objective.", tables=(facts,))]
    return page(title, run, _cards(found, row), [*parts, *_model(found)], _verdict(row))


def _verdict(row: RowExplanation | None) -> str:
    return "" if row is None else next(row.sentences())


def _cards(found: ModelExplanation, row: RowExplanation | None) -> list[Card]:
    most = max(found.pulls, key=lambda name: found.pulls[name])
    cards: list[Card] = [
        ("Moves most", most, f"{found.pulls[most]:.1%} of the fused score's movement"),
        ("Rows", f"{found.rows:,}", "looked at"),
    ]
    if row is not None:
        place = f"{ordinal(row.place)} of {row.candidates:,}"
        cards.insert(0, (f"Row {row.row:,}", place, f"fused score {row.fused:.4f}"))
    return cards


def _model(found: ModelExplanation) -> list[Section]:
    legend = objective_legend(found.names)
    overall = {
        found.formula: tuple(abs(found.effective[name]) for name in found.names),
        "measured": tuple(found.pulls[name] for name in found.names),
    }
    weights = share_plot(
        found.names, "effective", "Effective weights", overall, 100 + _ROW * 2, True
    )
    by_context = [
        share_plot(
            found.names, f"effective-{column}", column, values, 100 + 18 * len(values), False
        )
        for column, values in found.by_context.items()
    ]
    line = {"color": ACCENT, "dash": "solid", "width": 2}
    curves = response_panels(found.names, {found.method: found.responses}, {found.method: line})
    parts = [
        Section(
            "weights",
            "Effective weights",
            "The first bar is what a unit of probability counts. The second is measured: each "
            "score moves from its 10th to its 90th percentile while the others rest at their "
            "medians; shares of the fused score's movement.",
            (weights,),
            legend=legend,
        ),
        Section(
            "context",
            "By context",
            "The same measure for the rows of each context value: bars of different shape are "
            "personalisation.",
            tuple(by_context),
            legend=legend,
        ),
        Section(
            "responses",
            "Responses",
            "The fused score as one score moves and the others rest at their medians, mean over "
            "contexts, in standard deviations of the fused score.",
            tuple(curves),
        ),
    ]
    return [part for part in parts if part.plots]


def _row(row: RowExplanation, notes: Sequence[str]) -> Section:
    lead = (
        "What each objective adds to the fused score of this row, beside what it adds on average "
    )
    lead += (
        "over the candidates of its request; and where the row would be if a score were another."
    )
    plots = [*([_adds(row)] if row.adds is not None else []), _places(row)]
    table = row_table(row)
    shown = Table(table.columns, table.rows, emphasis=table.emphasis)
    return Section("row", f"Row {row.row:,}", lead, tuple(plots), (shown,), tuple(notes))


def _adds(row: RowExplanation) -> Plot:
    assert row.adds is not None
    assert row.usual is not None
    names = list(row.adds)
    data = [
        _bars("usual here", names, [row.usual[name] for name in names], MUTED),
        _bars("this row", names, [row.adds[name] for name in names], ACCENT),
    ]
    rows = [(name, row.adds[name], row.usual[name]) for name in names]
    heads = ("objective", "adds", "usual here")
    return plot(
        "row-adds",
        "What each objective adds",
        data,
        table_of(heads, rows, dict.fromkeys(heads[1:], ".4f")),
        x={"title": "part of the fused score"},
        y={"autorange": "reversed", "type": "category", "showgrid": False},
        height=130 + 2 * _ROW * len(names),
        barmode="group",
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )


def _bars(name: str, labels: list[str], values: list[float], color: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": labels,
        "x": values,
        "marker": {"color": color},
        "hovertemplate": f"%{{y}}<br>{name} %{{x:.4f}}<extra></extra>",
    }


def _places(row: RowExplanation) -> Plot:
    """Return where the row would be after each change, as dots beside where it is."""
    labels = [f"{c.column} {c.after - c.before:+.3g}" for c in row.changes]
    places = [c.place for c in row.changes]
    colors = [
        PALETTE[2] if p < row.place else PALETTE[5] if p > row.place else MUTED for p in places
    ]
    dots = {
        "type": "scatter",
        "mode": "markers",
        "name": "place",
        "x": places,
        "y": labels,
        "text": [hover_text(label) for label in labels],
        "marker": {"size": 11, "color": colors},
        "hovertemplate": "%{text}<br>place %{x}<extra></extra>",
    }
    line = {"color": ACCENT, "width": 2, "dash": "dot"}
    now = {"type": "line", "x0": row.place, "x1": row.place, "y0": 0, "y1": 1, "yref": "paper"}
    return plot(
        "row-places",
        "Where it would be",
        [dots],
        table_of(("change", "place"), list(zip(labels, places, strict=True))),
        x={"title": f"place of {row.candidates:,}; line: now", "range": [row.candidates + 1, 0]},
        y={"autorange": "reversed", "type": "category", "showgrid": False},
        height=130 + _ROW * len(labels),
        showlegend=False,
        shapes=[{**now, "line": line}],
    )
