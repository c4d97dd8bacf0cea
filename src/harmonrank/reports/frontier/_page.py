"""A frontier as one HTML page, in which a click on a point shows all that belongs to it."""

__all__ = ["frontier_page"]

from dataclasses import replace

import numpy as np

from harmonrank.evaluation.frontier import Frontier, Guarded
from harmonrank.reports.facts import Run
from harmonrank.reports.frontier._charts import front_plots
from harmonrank.reports.frontier._text import floor_table, frontier_table, volume_words
from harmonrank.reports.html import Card, page
from harmonrank.reports.sections import Section

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
    picks = _picks(frontier)
    about = (
        "Of all rows together. Filled dots are unbeaten in all objectives at once; the line joins "
        "what is best for these two. Click a dot, or type its number."
    )
    if frontier.best is not None:
        about += " Dashed: the best that any fusion can do with these two."
    kinds = [
        (frontier.auc, "AUC", "auc", "AUC", _MOST_PAIRS, about),
        (
            frontier.request_auc,
            "request AUC",
            "request",
            "Request AUC",
            _FEWER,
            "How well candidates of one request are ordered. The weights that are best here may "
            "be others: the heads are weighted for AUC over all rows.",
        ),
        (
            frontier.events,
            f"events at {frontier.k}",
            "events",
            f"Events at {frontier.k}",
            _FEWER,
            f"How many events of each objective the first {frontier.k} of a request hold, mean "
            "over requests. What they are worth, added up, is the value at "
            f"{frontier.k}.",
        ),
    ]
    for front, what, key, name, most, words in kinds:
        if front is not None and len(np.flatnonzero(front.unbeaten)):
            plots = tuple(front_plots(frontier, front, what, key, most))
            key = f"{key}-trade-offs"
            parts.append(Section(key, name, words, plots, picks=picks if plots else {}))
    return [part for part in parts if part.tables or part.plots]


def _cards(frontier: Frontier) -> list[Card]:
    front = frontier.auc
    volume = "–" if front.volume is None else f"{front.volume:.3g}"
    possible = (
        ""
        if frontier.best is None or frontier.best.volume is None
        else (f"of at best {frontier.best.volume:.3g}")
    )
    return [
        ("Objectives", str(len(frontier.names)), ", ".join(frontier.names)),
        ("Points", str(len(frontier.weights)), f"{int(front.unbeaten.sum())} unbeaten"),
        ("Knee", f"point {front.knee}", f"AUC-sum {frontier.sums[front.knee]:.4f}"),
        ("Now", f"{frontier.sums[0]:.4f}", "AUC-sum with the weights of the model"),
        ("Hypervolume", volume, possible or volume_words(frontier)),
    ]


def _picks(frontier: Frontier) -> dict[str, str]:
    """Return what is said of each point when it is picked."""
    named, found = frontier.listed(), {}
    for number, weights in enumerate(frontier.weights.tolist()):
        moved = frontier.auc.figures[number] - frontier.auc.figures[0]
        parts = [
            f"{name} {weight + 0.0:.2f} → AUC {area:.4f} ({change:+.4f})"
            for name, weight, area, change in zip(
                frontier.names,
                weights,
                frontier.auc.figures[number].tolist(),
                moved.tolist(),
                strict=True,
            )
        ]
        what = f" ({named[number]})" if named.get(number) else ""
        found[str(number)] = (
            f"Point {number}{what}: {'; '.join(parts)}. Sum {frontier.sums[number]:.4f}. "
            f"To keep it: --save NAME --choose {number}"
        )
    return found
