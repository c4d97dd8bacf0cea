"""Charts of predicted against observed probabilities."""

__all__ = ["calibration_plots"]

from collections.abc import Sequence
from math import log
from typing import Any

from harmonrank.reports.facts import Facts
from harmonrank.reports.figures._common import style
from harmonrank.reports.model_facts import Bin
from harmonrank.reports.plots import MUTED, Plot, plot, scatter, whiskers
from harmonrank.support.table import table_of

_WIDE = 100


def calibration_plots(facts: Facts) -> list[Plot]:
    """One panel per objective: predicted against observed, with upstream's own scores."""
    told = {n: f.calibration for n, f in facts.methods.items() if f.calibration}
    if not told:
        return []
    plots = []
    for m, objective in enumerate(facts.board.objectives):
        curves: dict[str, tuple[Bin, ...]] = {n: c[m] for n, c in told.items()}
        curves["upstream scores"] = facts.upstream[m]
        every = [b for bins in curves.values() for b in bins]
        if not every:
            continue  # a graded objective has no share of positives
        low = min(max(min(b.predicted, b.observed), 1e-5) for b in every)
        high = min(max(max(b.predicted, b.observed) for b in every) * 1.3, 1.0)
        ends = [low / 1.3, high]
        equal = {"color": MUTED, "dash": "dot", "width": 1.5}
        data = [scatter("", ends, ends, "", "lines", line=equal, hoverinfo="skip")]
        data += [_calibration_curve(facts, name, bins) for name, bins in curves.items()]
        scale = {
            "type": "log",
            "range": [log(e, 10) for e in ends],
            "tickformat": ".3~%",
            # An axis without a power of ten on it would have no tick: it shows 2 and 5 times too.
            "dtick": 1 if ends[1] / ends[0] > _WIDE else "D2",
        }
        plots.append(
            plot(
                f"calibration-{objective}",
                objective,
                data,
                table_of(
                    ("method", "rows", "predicted", "observed", "low", "high"),
                    tuple(
                        (n, b.rows, b.predicted, b.observed, b.low, b.high)
                        for n, bins in curves.items()
                        for b in bins
                    ),
                    dict.fromkeys(("predicted", "observed", "low", "high"), ".3%"),
                ),
                x={"title": "predicted probability (%, log scale)", **scale},
                y={"title": "observed (%, log scale)", **scale},
                height=320,
                showlegend=False,
            )
        )
    return plots


def _calibration_curve(facts: Facts, name: str, bins: Sequence[Bin]) -> dict[str, Any]:
    upstream = name == "upstream scores"
    line = {"color": MUTED, "dash": "dash"} if upstream else style(facts, name)
    observed = [b.observed for b in bins]
    spread = whiskers(
        observed, [b.low for b in bins], [b.high for b in bins], thickness=1.2, width=3
    )
    return scatter(
        name,
        [b.predicted for b in bins],
        # A logarithm has no place for none at all.
        [value if value > 0 else None for value in observed],
        f"{name}<br>predicted %{{x:.3%}}<br>observed %{{y:.3%}}",
        "lines+markers",
        meta=name,
        line={**line, "width": 2},
        marker={"size": 6},
        **({"error_y": spread} if name == facts.focus else {}),
    )
