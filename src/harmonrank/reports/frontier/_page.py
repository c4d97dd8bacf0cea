"""A frontier as one HTML page, in which a click on a point shows all that belongs to it."""

from dataclasses import replace

from harmonrank.evaluation.frontier import Frontier
from harmonrank.reports.frontier._charts import front_plots
from harmonrank.reports.frontier._text import (
    floor_table,
    frontier_table,
    today_words,
    volume_words,
)
from harmonrank.reports.html import Card, Section, page, section
from harmonrank.reports.run import Run

_MOST_PAIRS = 6
_FEWER = 4


def frontier_page(title: str, frontier: Frontier, run: Run, chosen: int | None = None) -> str:
    """Return the page.

    Args:
        title: Of the page.
        frontier: All points.
        run: How it was made.
        chosen: The number of the point that is chosen; none if left out.
    """
    parts, verdict = frontier_sections(frontier, chosen), today_words(frontier) or ""
    if (floors := floor_table(frontier)) is not None and frontier.guarded is not None:
        verdict = f"{frontier.guarded.sentence()} {verdict}".strip()
        parts.insert(0, section("floors", tables=[floors], guarded=frontier.guarded))
    return page(title, run, _cards(frontier), parts, verdict)


def frontier_sections(frontier: Frontier, chosen: int | None = None) -> list[Section]:
    """Return the points, then the charts of each kind of figure."""
    table = replace(frontier_table(frontier, chosen), title="", notes=())
    parts, picks = [section("points", tables=[table], frontier=frontier)], _picks(frontier)
    fronts = [
        (frontier.auc, "AUC", "auc"),
        (frontier.request_auc, "request AUC", "request"),
        (frontier.events, f"events at {frontier.k}", "events"),
    ]
    for front, what, key in sorted(fronts, key=lambda each: each[0] is not frontier.decisive):
        most = _MOST_PAIRS if front is frontier.decisive else _FEWER
        if front is not None and front.unbeaten.any():
            plots = front_plots(frontier, front, what, key, most)
            parts.append(section(f"{key}-trade-offs", plots, picks=picks, frontier=frontier))
    return parts


def _cards(frontier: Frontier) -> list[Card]:
    front = frontier.decisive
    volume = "–" if front.volume is None else f"{front.volume:.3g}"
    best = None if frontier.best is None else frontier.best.volume
    possible = volume_words(frontier) if best is None else f"of at best {best:.3g}"
    today: list[Card] = []
    if frontier.today is not None:
        today = [
            ("Today", f"{frontier.today:.4f}", f"AUC-sum {frontier.where} of what ranks today")
        ]
    return [
        ("Objectives", str(len(frontier.names)), ", ".join(frontier.names)),
        ("Points", str(len(frontier.weights)), f"{int(front.unbeaten.sum())} unbeaten"),
        ("Knee", f"point {front.knee}", f"AUC-sum {frontier.sums[front.knee]:.4f}"),
        *today,
        ("Now", f"{frontier.sums[0]:.4f}", f"AUC-sum {frontier.where}, weights of the model"),
        ("Hypervolume", volume, possible),
    ]


def _picks(frontier: Frontier) -> dict[str, str]:
    """Return what is said of each point when it is picked."""
    named, areas = frontier.listed(), frontier.decisive.figures
    picks = {}
    for number, weights in enumerate(frontier.weights.tolist()):
        figures = zip(frontier.names, weights, areas[number], areas[number] - areas[0], strict=True)
        parts = [
            f"{n} {w + 0.0:.2f} → AUC {area:.4f} ({moved:+.4f})" for n, w, area, moved in figures
        ]
        what = f" ({named[number]})" if named.get(number) else ""
        picks[str(number)] = (
            f"Point {number}{what}: {'; '.join(parts)}. Sum {frontier.sums[number]:.4f}. "
            f"To keep it: --save NAME --choose {number}"
        )
    return picks
