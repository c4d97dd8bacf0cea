"""A frontier as a table: the points that a reader looks at first."""

from collections.abc import Iterator
from typing import Any

from harmonrank.evaluation.frontier import Frontier
from harmonrank.support.table import Cell, Column, Style, Table


def frontier_table(frontier: Frontier, chosen: int | None = None) -> Table:
    """Return a row per point: what it is, the AUC of each objective, their sum, its weights.

    Args:
        frontier: All points.
        chosen: The number of the point that is chosen, in bold; none if left out.
    """
    listed = frontier.listed()
    if chosen is not None:
        words = [word for word in (listed.get(chosen), "chosen") if word]
        listed[chosen] = ", ".join(words)
    columns = (
        Column("point"),
        Column("what"),
        *(Column(frontier.title(name), ".4f") for name in frontier.names),
        Column("sum", ".4f"),
        *[Column("sum, all rows", ".4f", widest=8, spare=True)] * frontier.within,
        Column("weights", spare=True),
    )
    front, whole, count = frontier.decisive, frontier.auc, frontier.count
    entries: list[tuple[Any, ...]] = []
    if front.today is not None:
        entries.append((Cell(None, "–"), "today", front.today, whole.today, ""))
    first = len(entries)
    for number, what in listed.items():
        # No weight at all is 0.00, not -0.00, of an objective that is unwanted.
        weights = " ".join(f"{weight + 0.0:.2f}" for weight in frontier.weights[number])
        mark = "" if front.unbeaten[number] else "·"
        areas = front.figures[number], whole.figures[number]
        entries.append((Cell(number, mark=mark), what, *areas, weights))
    rows = [
        (point, what, *here.tolist(), here @ count, *[all_rows @ count] * frontier.within, weights)
        for point, what, here, all_rows, weights in entries
    ]
    styles: dict[int, Style] = {
        i: "bold" for i, number in enumerate(listed, first) if number == chosen
    }
    notes = list(_notes(frontier))
    if frontier.refits:
        far = max(one.largest for one in frontier.refits)
        notes.append(
            f"Fitted again for {len(frontier.refits)} of these points: no AUC differs by over "
            f"{far:.4f}."
        )
    title = "" if frontier.guarded is None else frontier.guarded.sentence()
    return Table(columns, tuple(rows), title, emphasis=styles, notes=tuple(notes))


def floor_table(frontier: Frontier) -> Table | None:
    """Return a row per floor: how far above it the point is, and what keeping it costs."""
    guarded = frontier.guarded
    if guarded is None:
        return None
    figures = {
        "today": guarded.today,
        "now": guarded.current.figures,
        "there": guarded.point.figures,
    }
    known = {title: each.tolist() for title, each in figures.items() if each is not None}
    columns = (
        Column("floor"),
        *(Column(title, ".4f") for title in known),
        Column("above, with margin", "+.4f", widest=11),
        Column("price", ".3f"),
    )
    rows = zip(
        map(str, guarded.floors),
        *known.values(),
        guarded.point.slack.tolist(),
        (guarded.prices.get(floor.objective) for floor in guarded.floors),
        strict=True,
    )
    note = f"AUC {guarded.where}. Price: what the sum gains per unit by which a floor is lowered."
    if any(floor.k is not None for floor in guarded.floors):
        note += " name@K: events per request among its first K."
    return Table(columns, tuple(rows), notes=(note,))


def _notes(frontier: Frontier) -> Iterator[str]:
    by = "true probabilities" if frontier.exact else "labels"
    if (gained := today_words(frontier)) is not None:
        yield gained
    unbeaten = int(frontier.decisive.unbeaten.sum())
    yield (
        f"AUC {frontier.where} by {by}, {frontier.rows:,} rows; floors, knee and sum are "
        f"by it. {unbeaten} of {len(frontier.weights)} points are unbeaten (· is beaten). Weights "
        "have mean size 1; the sum counts each AUC as the model does now."
    )
    yield volume_words(frontier)


def today_words(frontier: Frontier) -> str | None:
    """Return where what ranks today stands, in a sentence; None if it was not named."""
    if frontier.today is None:
        return None
    ahead, whole = frontier.sums[0] - frontier.today, ""
    if frontier.within and frontier.auc.today is not None:
        moved = (frontier.auc.figures[0] - frontier.auc.today) @ frontier.count
        whole = f"; over all rows {moved:+.4f}"
    return (
        f"Today ({frontier.baseline}): AUC-sum {frontier.where} {frontier.today:.4f}; the model "
        f"with its present weights {ahead:+.4f} against it{whole}."
    )


def volume_words(frontier: Frontier) -> str:
    """Return the hypervolumes in one sentence."""
    if frontier.auc.volume is None:
        return "Hypervolume is measured up to five objectives."
    fronts = {
        "AUC within requests": frontier.request_auc,
        "AUC over all rows": frontier.auc,
        f"events at {frontier.k}": frontier.events,
    }
    parts = []
    for name, front in fronts.items():
        if front is not None and front.volume is not None:
            parts.append(f"{name} {front.volume:.3g}")
            if front is frontier.decisive and frontier.best is not None:
                parts[-1] += f" of at best {frontier.best.volume:.3g}"
    return f"Hypervolume above chance: {', '.join(parts)}."
