"""A frontier as a table: the points that a reader looks at first."""

__all__ = ["floor_table", "frontier_table", "volume_words"]

from collections.abc import Iterator

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
        Column("what", least=7),
        *(Column(frontier.title(name), ".4f", least=6) for name in frontier.names),
        Column("sum", ".4f"),
        Column("weights", spare=True),
    )
    rows, styles = [], {}
    for place, (number, what) in enumerate(listed.items()):
        figures = frontier.auc.figures[number].tolist()
        # No weight at all is 0.00, not -0.00, of an objective that is unwanted.
        weights = " ".join(f"{weight + 0.0:.2f}" for weight in frontier.weights[number])
        mark = "" if frontier.auc.unbeaten[number] else "·"
        rows.append((Cell(number, mark=mark), what, *figures, frontier.sums[number], weights))
        style: Style = "bold" if number == chosen else ""
        styles[place] = style
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
    rows = []
    for floor, slack in zip(guarded.floors, guarded.point.slack.tolist(), strict=True):
        m = guarded.names.index(floor.objective)
        price = guarded.prices.get(floor.objective)
        areas = (float(guarded.current.areas[m]), float(guarded.point.areas[m]))
        rows.append((str(floor), *areas, slack, price))
    return Table(columns, tuple(rows))


def _floor_notes(guarded: Guarded) -> Iterator[str]:
    for floor, slack in zip(guarded.floors, guarded.point.slack.tolist(), strict=True):
        m = guarded.names.index(floor.objective)
        now, there = guarded.current.areas[m], guarded.point.areas[m]
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
    text = f"Hypervolume above chance: AUC {frontier.auc.volume:.3g}"
    if frontier.best is not None and frontier.best.volume is not None:
        text += f" of at best {frontier.best.volume:.3g}"
    if frontier.request_auc is not None and frontier.request_auc.volume is not None:
        text += f", per-request AUC {frontier.request_auc.volume:.3g}"
    if frontier.events is not None and frontier.events.volume is not None:
        text += f", events at {frontier.k} {frontier.events.volume:.3g}"
    return f"{text}."
