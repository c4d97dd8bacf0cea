"""An explanation as one HTML page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harmonrank.reports import plots
from harmonrank.reports.explanation._model import ModelExplanation
from harmonrank.reports.explanation._row import RowExplanation, ordinal
from harmonrank.reports.explanation._text import row_table
from harmonrank.reports.html import Card, Section, page, section
from harmonrank.reports.model_facts import formula_of
from harmonrank.reports.run import Run
from harmonrank.reports.sections import effect_sections
from harmonrank.support.table import Table, table_of


def explanation_page(
    title: str,
    facts: Table,
    explained: ModelExplanation,
    run: Run,
    row: RowExplanation | None = None,
    notes: Sequence[str] = (),
    caution: str = "",
) -> str:
    """Return the page.

    Args:
        title: Of the page.
        facts: What the model learned of each objective.
        explained: What moves its fused score.
        run: How it was made.
        row: One row of them, explained first.
        notes: What cannot be said of this model.
        caution: What a reader should know before all else.
    """
    parts = [] if row is None else [_row(row, notes)]
    parts += [section("model", tables=[facts])]
    verdict = caution if row is None else next(row.sentences())
    return page(title, run, _cards(explained, row), [*parts, *_effects(explained)], verdict)


def _cards(explained: ModelExplanation, row: RowExplanation | None) -> list[Card]:
    influence = explained.influence
    shares, what = explained.pulls, "of the fused score's movement"
    if influence is not None:
        shares, what = influence.shares, f"of the influence on the order {influence.where}"
    most = max(shares, key=lambda name: shares[name])
    cards: list[Card] = [
        ("Moves most", most, f"{shares[most]:.1%} {what}"),
        ("Rows", f"{explained.rows:,}", "looked at"),
    ]
    if row is not None:
        place = f"{ordinal(row.place)} of {row.candidates:,}"
        cards.insert(0, (f"Row {row.row:,}", place, f"fused score {row.fused:.4f}"))
    return cards


def _effects(explained: ModelExplanation) -> Iterator[Section]:
    method, names = explained.method, explained.names
    return effect_sections(
        names,
        explained.influence,
        formula_of(explained.optimises),
        [explained.effective[name] for name in names],
        {method: [explained.pulls[name] for name in names]},
        explained.by_context,
        {method: explained.responses},
        {method: {"color": plots.ACCENT, "dash": "solid"}},
        method,
    )


def _row(row: RowExplanation, notes: Sequence[str]) -> Section:
    table = replace(row_table(row), title="", notes=())
    return section("row", [*_adds(row), _places(row)], [table], notes=notes, row=row)


def _adds(row: RowExplanation) -> Iterator[plots.Plot]:
    """Yield a chart of the parts, of methods that can tell them."""
    if row.adds is None or row.usual is None:
        return
    heads = ("objective", "adds", "usual here")
    yield plots.plot(
        "row-adds",
        "What each objective adds",
        [_parts("usual here", row.usual, plots.MUTED), _parts("this row", row.adds, plots.ACCENT)],
        table_of(
            heads,
            [(name, part, row.usual[name]) for name, part in row.adds.items()],
            dict.fromkeys(heads[1:], ".4f"),
        ),
        x={"title": "part of the fused score"},
        y=plots.ROWS,
        height=130 + 2 * plots.ROW * len(row.adds),
        barmode="group",
        showlegend=True,
    )


def _parts(name: str, parts: Mapping[str, float], color: str) -> dict[str, Any]:
    look = {"marker": {"color": color}}
    return plots.bars(name, list(parts), list(parts.values()), f"{name} %{{x:.4f}}", **look)


def _places(row: RowExplanation) -> plots.Plot:
    """Return where the row would be after each change, as dots beside where it is."""
    places = [(f"{c.column} {c.after - c.before:+.3g}", c.place) for c in row.changes]
    labels = [label for label, _ in places]
    colors = [
        plots.PALETTE[2]
        if place < row.place
        else plots.PALETTE[5]
        if place > row.place
        else plots.MUTED
        for _, place in places
    ]
    dots = plots.scatter(
        "place",
        [place for _, place in places],
        labels,
        "%{text}<br>place %{x}",
        text=list(map(plots.hover_text, labels)),
        marker={"size": 11, "color": colors},
    )
    return plots.plot(
        "row-places",
        "Where it would be",
        [dots],
        table_of(("change", "place"), places),
        x={"title": f"place of {row.candidates:,}; line: now", "range": [row.candidates + 1, 0]},
        y=plots.ROWS,
        height=130 + plots.ROW * len(labels),
        shapes=[plots.upright(row.place, color=plots.ACCENT, width=2, dash="dot")],
    )
