"""A frontier as a table: the points that a reader looks at first."""

__all__ = ["floor_table", "frontier_table", "volume_words"]

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
        Column("weights", spare=True),
    )
    rows = []
    for number, what in listed.items():
        # No weight at all is 0.00, not -0.00, of an objective that is unwanted.
        weights = " ".join(f"{weight + 0.0:.2f}" for weight in frontier.weights[number])
        mark = "" if frontier.auc.unbeaten[number] else "·"
        figures = frontier.auc.figures[number].tolist()
        rows.append((Cell(number, mark=mark), what, *figures, frontier.sums[number], weights))
    styles: dict[int, Style] = {i: "bold" for i, number in enumerate(listed) if number == chosen}
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
        Column("AUC now", ".4f"),
        Column("AUC there", ".4f"),
        Column("above the floor, with margin", "+.4f"),
        Column("price", ".3f"),
    )
    rows = [
        (str(floor), now, there, slack, guarded.prices.get(floor.objective))
        for floor, now, there, slack in _floors(guarded)
    ]
    return Table(columns, tuple(rows))


def _floors(guarded: Guarded) -> Iterator[tuple[Any, float, float, float]]:
    """Yield each floor, the AUC now and at the point, and how far above it the point is."""
    for floor, slack in zip(guarded.floors, guarded.point.slack.tolist(), strict=True):
        m = guarded.names.index(floor.objective)
        yield floor, float(guarded.current.areas[m]), float(guarded.point.areas[m]), slack


def _floor_notes(guarded: Guarded) -> Iterator[str]:
    for floor, now, there, slack in _floors(guarded):
        lower = "its lower end is" if guarded.margin else "that is"
        text = f"{floor}: AUC {now:.4f} now, {there:.4f} there; {lower} {slack:+.4f} from the floor"
        price = guarded.prices.get(floor.objective)
        if price:
            text += f". Lowered by .001 it would bring the sum {price / 1000:+.4f}"
        yield f"{text}."


def _notes(frontier: Frontier) -> Iterator[str]:
    by = "true probabilities" if frontier.exact else "labels"
    yield (
        f"AUC by {by} on {frontier.rows:,} rows; {int(frontier.auc.unbeaten.sum())} of "
        f"{len(frontier.weights)} points are unbeaten (· is beaten). Weights have mean size 1; the "
        "sum counts each AUC as the model does now."
    )
    yield volume_words(frontier)


def volume_words(frontier: Frontier) -> str:
    """Return the hypervolumes in one sentence."""
    if frontier.auc.volume is None:
        return "Hypervolume is measured up to five objectives."
    volume = frontier.auc.volume
    parts = [f"AUC {volume:.3g}"]
    if frontier.best is not None and frontier.best.volume is not None:
        parts = [f"{parts[0]} of at best {frontier.best.volume:.3g}"]
    others = {"per-request AUC": frontier.request_auc, f"events at {frontier.k}": frontier.events}
    for name, front in others.items():
        if front is not None and front.volume is not None:
            parts.append(f"{name} {front.volume:.3g}")
    return f"Hypervolume above chance: {', '.join(parts)}."
