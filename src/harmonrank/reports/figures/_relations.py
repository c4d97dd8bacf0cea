"""Charts of objectives against each other: correlations, attention, trade-offs."""

__all__ = ["correlation_plots", "tradeoff_plots"]

from collections.abc import Iterable

from harmonrank.reports.facts import Facts
from harmonrank.reports.figures._common import heatmap
from harmonrank.reports.plots import ACCENT, INK, PALETTE, Plot, plot, scatter
from harmonrank.table import table_of

_EVERY = ".4f"


def correlation_plots(facts: Facts) -> list[Plot]:
    """Labels beside attention, then scores and true probabilities, each an M × M heatmap."""
    data, names = facts.data, list(facts.board.objectives)
    matrices = [
        ("labels", "Labels (Spearman)", data.label_correlation),
        ("scores", "Scores (Spearman)", data.score_correlation),
        ("truth", "True probabilities (Spearman)", data.truth_correlation),
    ]
    plots = [heatmap(names, n, t, m, "diverging") for n, t, m in matrices if len(m) > 1]
    told = [name for name, method in facts.methods.items() if method.attention]
    # Networks that learn by other losses have it too; the published method speaks for them.
    for name in ["harmonrank-paper"] if "harmonrank-paper" in told else told[:1]:
        title = f"Attention of {name}"
        matrix = facts.methods[name].attention
        plots.insert(1, heatmap(names, f"attention-{name}", title, matrix, "sequential"))
    return plots


def tradeoff_plots(facts: Facts) -> list[Plot]:
    """One panel per pair of objectives: the frontier by weights, and where the methods stand."""
    plots = []
    for t in facts.tradeoffs:
        data = []
        if t.best:
            line = {"color": PALETTE[1], "dash": "dash", "width": 2}
            hover = "best possible<br>%{x:.4f}, %{y:.4f}"
            data.append(scatter("best possible", *_xy(t.best), hover, "lines", line=line))
        data += [
            scatter(
                f"{facts.focus}, re-weighted",
                *_xy(t.points),
                f"weight of {t.first} %{{customdata:.0f}} %<br>"
                f"{t.first} %{{x:.4f}}<br>{t.second} %{{y:.4f}}",
                "lines+markers",
                customdata=[100 * s for s in t.shares],
                line={"color": ACCENT, "width": 2},
                marker={
                    "size": [8 if u else 5 for u in t.unbeaten],
                    "symbol": ["circle" if u else "circle-open" for u in t.unbeaten],
                },
            ),
            scatter(
                "methods as fitted",
                *_xy(t.others.values()),
                "%{text}<br>%{x:.4f}, %{y:.4f}",
                text=list(t.others),
                marker={"size": 9, "color": INK, "symbol": "x-thin-open", "line": {"width": 2}},
            ),
        ]
        reach = f" of {t.best_volume:.4f} possible" if t.best_volume is not None else ""
        said = {
            "x": 0.02,
            "y": 0.02,
            "xref": "paper",
            "yref": "paper",
            "showarrow": False,
            "text": f"hypervolume {t.volume:.4f}{reach}",
        }
        plots.append(
            plot(
                f"frontier-{t.first}-{t.second}",
                f"{t.first} against {t.second}",
                data,
                table_of(
                    (f"weight of {t.first}", f"AUC {t.first}", f"AUC {t.second}", "unbeaten"),
                    tuple(
                        (s, *p, "yes" if u else "no")
                        for s, p, u in zip(t.shares, t.points, t.unbeaten, strict=True)
                    ),
                    {
                        f"weight of {t.first}": ".0%",
                        f"AUC {t.first}": _EVERY,
                        f"AUC {t.second}": _EVERY,
                    },
                ),
                x={"title": f"AUC of {t.first}"},
                y={"title": f"AUC of {t.second}"},
                height=360,
                showlegend=False,
                annotations=[said],
            )
        )
    return plots


def _xy(points: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    pairs = list(points)
    return [x for x, _ in pairs], [y for _, y in pairs]
