"""A frontier as one HTML page, in which a click on a point shows all that belongs to it."""

__all__ = ["frontier_page"]

from dataclasses import replace

from harmonrank.evaluation.frontier import Frontier, Guarded
from harmonrank.reports.frontier._charts import front_plots
from harmonrank.reports.frontier._text import floor_table, frontier_table, volume_words
from harmonrank.reports.html import Card, Section, page
from harmonrank.reports.run import Run

_MOST_PAIRS = 6
_FEWER = 4


def frontier_page(
    title: str,
    frontier: Frontier,
    run: Run,
    chosen: int | None = None,
    guarded: Guarded | None = None,
) -> str:
    """Return the page.

    Args:
        title: Of the page.
        frontier: All points.
        run: How it was made.
        chosen: The number of the point that is chosen; none if left out.
        guarded: What the search for floors found.
    """
    parts, verdict = frontier_sections(frontier, chosen), ""
    if guarded is not None:
        verdict = guarded.sentence()
        parts.insert(0, _floors(guarded))
    return page(title, run, _cards(frontier), parts, verdict)


def _floors(guarded: Guarded) -> Section:
    point = "the best AUC-sum that keeps all floors"
    if not guarded.feasible:
        point = "where the floor that is missed most is missed least, as not all can be kept"
    margin = "the lower end of the interval of the AUC, or of its paired difference to now,"
    lead = (
        f"The point: {point}. A floor holds if {margin if guarded.margin else 'the AUC'} is above "
        "it. The price is what the AUC-sum would gain per unit by which the floor is lowered; a "
        "floor that holds anyway has none."
    )
    return Section("floors", "Floors", lead, tables=(floor_table(guarded),))


def frontier_sections(frontier: Frontier, chosen: int | None = None) -> list[Section]:
    """Return the points, then the charts of each kind of figure."""
    table = frontier_table(frontier, chosen)
    by = "true probabilities" if frontier.exact else "labels"
    lead = (
        f"One fit, its weights moved: no point was trained. AUC by {by} on {frontier.rows:,} rows. "
        "The knee keeps the largest part of what each objective can reach; the sum counts each AUC "
        "as the model does now. “·” marks a point that another one beats."
    )
    parts = [Section("points", "Points", lead, tables=(replace(table, notes=()),))]
    about = (
        "Of all rows together. Filled dots are unbeaten in all objectives at once; the line joins "
        "what is best for these two. Click a dot, or type its number."
    )
    if frontier.best is not None:
        about += " Dashed: the best that any fusion can do with these two."
    requests = (
        "How well candidates of one request are ordered. The weights that are best here may "
        "be others: the heads are weighted for AUC over all rows."
    )
    k, picks = frontier.k, _picks(frontier)
    events = (
        f"How many events of each objective the first {k} of a request hold, mean over requests. "
        f"What they are worth, added up, is the value at {k}."
    )
    for front, what, key, most, words in (
        (frontier.auc, "AUC", "auc", _MOST_PAIRS, about),
        (frontier.request_auc, "request AUC", "request", _FEWER, requests),
        (frontier.events, f"events at {k}", "events", _FEWER, events),
    ):
        if front is not None and front.unbeaten.any():
            plots = front_plots(frontier, front, what, key, most)
            title = f"{what[:1].upper()}{what[1:]}"
            parts.append(Section(f"{key}-trade-offs", title, words, plots, picks=picks))
    return parts


def _cards(frontier: Frontier) -> list[Card]:
    front = frontier.auc
    volume = "–" if front.volume is None else f"{front.volume:.3g}"
    best = None if frontier.best is None else frontier.best.volume
    possible = volume_words(frontier) if best is None else f"of at best {best:.3g}"
    return [
        ("Objectives", str(len(frontier.names)), ", ".join(frontier.names)),
        ("Points", str(len(frontier.weights)), f"{int(front.unbeaten.sum())} unbeaten"),
        ("Knee", f"point {front.knee}", f"AUC-sum {frontier.sums[front.knee]:.4f}"),
        ("Now", f"{frontier.sums[0]:.4f}", "AUC-sum with the weights of the model"),
        ("Hypervolume", volume, possible),
    ]


def _picks(frontier: Frontier) -> dict[str, str]:
    """Return what is said of each point when it is picked."""
    named, areas = frontier.listed(), frontier.auc.figures
    found = {}
    for number, weights in enumerate(frontier.weights.tolist()):
        figures = zip(frontier.names, weights, areas[number], areas[number] - areas[0], strict=True)
        parts = [
            f"{n} {w + 0.0:.2f} → AUC {area:.4f} ({moved:+.4f})" for n, w, area, moved in figures
        ]
        what = f" ({named[number]})" if named.get(number) else ""
        found[str(number)] = (
            f"Point {number}{what}: {'; '.join(parts)}. Sum {frontier.sums[number]:.4f}. "
            f"To keep it: --save NAME --choose {number}"
        )
    return found
