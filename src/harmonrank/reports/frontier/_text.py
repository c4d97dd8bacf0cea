"""A frontier as a table: the points that a reader looks at first."""

__all__ = ["floor_table", "frontier_table", "today_words", "volume_words"]

from collections.abc import Iterator
from typing import Any

from harmonrank.evaluation.frontier import Frontier, Guarded
from harmonrank.support.table import Cell, Column, Style, Table


def frontier_table(
    frontier: Frontier, chosen: int | None = None, guarded: Guarded | None = None
) -> Table:
    """Return a row per point: what it is, the AUC of each objective, their sum, its weights.

    Args:
        frontier: All points.
        chosen: The number of the point that is chosen, in bold; none if left out.
        guarded: What the search for floors found, said above and below the table.
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
    rows: list[tuple[Any, ...]] = []
    if (today := frontier.decisive.today) is not None and frontier.auc.today is not None:
        whole = [float(frontier.auc.today @ frontier.count)] * frontier.within
        rows.append((Cell(None, "–"), "today", *today.tolist(), frontier.today, *whole, ""))
    first, whole_sums = len(rows), (frontier.auc.figures @ frontier.count).tolist()
    for number, what in listed.items():
        # No weight at all is 0.00, not -0.00, of an objective that is unwanted.
        weights = " ".join(f"{weight + 0.0:.2f}" for weight in frontier.weights[number])
        mark = "" if frontier.decisive.unbeaten[number] else "·"
        figures = [*frontier.decisive.figures[number].tolist(), frontier.sums[number]]
        whole = [whole_sums[number]] * frontier.within
        rows.append((Cell(number, mark=mark), what, *figures, *whole, weights))
    styles: dict[int, Style] = {
        i: "bold" for i, number in enumerate(listed, first) if number == chosen
    }
    notes = [*([] if guarded is None else _floor_notes(guarded)), *_notes(frontier)]
    if frontier.refits:
        far = max(one.largest for one in frontier.refits)
        notes.append(
            f"Fitted again for {len(frontier.refits)} of these points: no AUC differs by over "
            f"{far:.4f}."
        )
    title = "" if guarded is None else guarded.sentence()
    return Table(columns, tuple(rows), title, emphasis=styles, notes=tuple(notes))


def floor_table(guarded: Guarded) -> Table:
    """Return a row per floor: how far above it the point is, and what keeping it costs."""
    columns = (
        Column("floor"),
        *[Column("AUC today", ".4f")] * (guarded.today is not None),
        Column("AUC now", ".4f"),
        Column("AUC there", ".4f"),
        Column("above the floor, with margin", "+.4f"),
        Column("price", ".3f"),
    )
    rows = [
        (str(floor), *areas, slack, guarded.prices.get(floor.objective))
        for floor, areas, slack in _floors(guarded)
    ]
    return Table(columns, tuple(rows), notes=(f"AUC {guarded.where}, as in the table of points.",))


def _floors(guarded: Guarded) -> Iterator[tuple[Any, list[float], float]]:
    """Yield each floor, the AUC today, if known, now and at the point, and how far above it is."""
    for floor, slack in zip(guarded.floors, guarded.point.slack.tolist(), strict=True):
        m = guarded.names.index(floor.objective)
        known = (guarded.today, guarded.current.areas, guarded.point.areas)
        yield floor, [float(areas[m]) for areas in known if areas is not None], slack


def _floor_notes(guarded: Guarded) -> Iterator[str]:
    for floor, (*today, now, there), slack in _floors(guarded):
        lower = "its lower end is" if guarded.margin else "that is"
        known = "".join(f"{area:.4f} today, " for area in today)
        text = f"{floor}: AUC {known}{now:.4f} now, {there:.4f} there; {lower} {slack:+.4f} from "
        text += "the floor"
        price = guarded.prices.get(floor.objective)
        if price:
            text += f". Lowered by .001 it would bring the sum {price / 1000:+.4f}"
        yield f"{text}."


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
    whole = f"AUC over all rows {frontier.auc.volume:.3g}"
    if frontier.best is not None and frontier.best.volume is not None:
        whole = f"{whole} of at best {frontier.best.volume:.3g}"
    others = {
        "AUC within requests": frontier.request_auc,
        f"events at {frontier.k}": frontier.events,
    }
    parts = [
        f"{name} {front.volume:.3g}"
        for name, front in others.items()
        if front is not None and front.volume is not None
    ]
    parts.insert(int(frontier.within), whole)
    return f"Hypervolume above chance: {', '.join(parts)}."
