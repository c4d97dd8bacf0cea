"""Charts of objectives against each other: correlations, attention, trade-offs."""

__all__ = ["correlation_plots", "tradeoff_plots"]

from collections.abc import Sequence

from harmonrank.reports.facts import Facts
from harmonrank.reports.plots import ACCENT, INK, PALETTE, Plot, Table, plot

_EVERY = ".4f"


def correlation_plots(facts: Facts) -> list[Plot]:
    """Labels beside scores, true probabilities and attention, each an M × M heatmap."""
    data = facts.data
    matrices = [
        ("labels", "Labels (Spearman)", data.label_correlation),
        ("scores", "Scores (Spearman)", data.score_correlation),
        ("truth", "True probabilities (Spearman)", data.truth_correlation),
    ]
    plots = [_heatmap(facts, n, t, m, "diverging") for n, t, m in matrices if len(m) > 1]
    told = [name for name, method in facts.methods.items() if method.attention]
    # Networks that learn by other losses have it too; the published method speaks for them.
    for name in ["harmonrank-paper"] if "harmonrank-paper" in told else told[:1]:
        title = f"Attention of {name}"
        matrix = facts.methods[name].attention
        plots.append(_heatmap(facts, f"attention-{name}", title, matrix, "sequential"))
    return plots


def _heatmap(
    facts: Facts, name: str, title: str, matrix: Sequence[Sequence[float]], scale: str
) -> Plot:
    objectives = list(facts.board["objectives"])
    signed = scale == "diverging"
    # A correlation of 1 with itself would hide all others, which are smaller.
    off = [abs(v) for i, row in enumerate(matrix) for j, v in enumerate(row) if i != j and v == v]
    # Somewhat beyond the largest, so that numbers can be read on its colour.
    reach = 1.25 * (max([0.1, *off]) if signed else max(v for row in matrix for v in row))
    cells = [
        [None if signed and i == j else v for j, v in enumerate(row)]
        for i, row in enumerate(matrix)
    ]
    heat = {
        "type": "heatmap",
        "x": objectives,
        "y": objectives,
        "z": cells,
        "zmin": -reach if signed else 0,
        "zmax": reach,
        "colorscale": f"--scale-{scale}",
        "texttemplate": "%{z:.2f}",
        "textfont": {"color": INK},
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hovertemplate": "%{y}, %{x}: %{z:.3f}<extra></extra>",
    }
    return plot(
        f"relation-{name}" if signed else name,
        title,
        [heat],
        Table(
            ("", *objectives),
            tuple((o, *row) for o, row in zip(objectives, matrix, strict=True)),
            dict.fromkeys(objectives, ".3f"),
        ),
        x={"showgrid": False, "tickangle": -35},
        y={"autorange": "reversed", "showgrid": False},
        height=300,
    )


def tradeoff_plots(facts: Facts) -> list[Plot]:
    """One panel per pair of objectives: the frontier by weights, and where the methods stand."""
    plots = []
    for t in facts.tradeoffs:
        data = []
        if t.best:
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": "best possible",
                    "x": [x for x, _ in t.best],
                    "y": [y for _, y in t.best],
                    "line": {"color": PALETTE[1], "dash": "dash", "width": 2},
                    "hovertemplate": "best possible<br>%{x:.4f}, %{y:.4f}<extra></extra>",
                }
            )
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": f"{facts.focus}, re-weighted",
                "x": [x for x, _ in t.points],
                "y": [y for _, y in t.points],
                "customdata": [100 * s for s in t.shares],
                "line": {"color": ACCENT, "width": 2},
                "marker": {
                    "size": [8 if u else 5 for u in t.unbeaten],
                    "symbol": ["circle" if u else "circle-open" for u in t.unbeaten],
                },
                "hovertemplate": f"weight of {t.first} %{{customdata:.0f}} %<br>"
                f"{t.first} %{{x:.4f}}<br>{t.second} %{{y:.4f}}<extra></extra>",
            }
        )
        others = {
            "type": "scatter",
            "mode": "markers",
            "name": "methods as fitted",
            "x": [x for x, _ in t.others.values()],
            "y": [y for _, y in t.others.values()],
            "text": list(t.others),
            "marker": {"size": 9, "color": INK, "symbol": "x-thin-open", "line": {"width": 2}},
            "hovertemplate": "%{text}<br>%{x:.4f}, %{y:.4f}<extra></extra>",
        }
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
                [*data, others],
                Table(
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
