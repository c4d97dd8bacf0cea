"""Charts of training by epoch and of scores' drift."""

__all__ = ["drift_plots", "epoch_plots", "training_plots"]

from collections.abc import Mapping, Sequence
from typing import Any

from harmonrank.reports.facts import Facts
from harmonrank.reports.figures._common import style
from harmonrank.reports.plots import ACCENT, LEGEND, MUTED, Plot, logit, logit_axis, plot, scatter
from harmonrank.support.table import table_of

_BEADS = 60


def training_plots(facts: Facts) -> list[Plot]:
    """Validation AUC-sum, training loss and the share of items in gradient, by epoch."""
    runs = {n: f.epochs for n, f in facts.methods.items() if f.epochs}
    return epoch_plots("training", runs, {name: style(facts, name) for name in runs})


def epoch_plots(
    name: str,
    runs: Mapping[str, Sequence[Sequence[float | None]]],
    styles: Mapping[str, Mapping[str, Any]],
    *,
    showlegend: bool = False,
) -> list[Plot]:
    """Draw what each epoch of some runs had: loss, validation AUC-sum, share in gradient."""
    values: dict[str, dict[str, list[Any]]] = {
        "valid": {n: [e[1] for e in epochs] for n, epochs in runs.items()},
        "loss": {n: _change([e[0] for e in epochs]) for n, epochs in runs.items()},
        "gradient": {
            n: [100 * e[2] for e in epochs if e[2] is not None] for n, epochs in runs.items()
        },
    }
    titles = {
        "valid": ("Validation AUC-sum", "AUC-sum (no unit)"),
        "loss": ("Training loss", "change since epoch 1 (%)"),
        "gradient": ("Items in gradient", "share of items (%)"),
    }
    plots = []
    for part, (title, unit) in titles.items():
        series = {n: v for n, v in values[part].items() if v}
        if series:
            key = f"{name}-{part}"
            plots.append(_epochs_plot(key, title, unit, series, styles, showlegend))
    return plots


def _change(losses: list[Any]) -> list[float]:
    """Return the change since the first, in percent of its size; losses have units of their own."""
    return [100 * (loss - losses[0]) / abs(losses[0]) for loss in losses] if losses[0] else []


def _epochs_plot(
    name: str,
    title: str,
    unit: str,
    series: Mapping[str, list[Any]],
    styles: Mapping[str, Mapping[str, Any]],
    showlegend: bool,
) -> Plot:
    length = max(map(len, series.values()))
    data = [
        scatter(
            method,
            list(range(1, len(values) + 1)),
            values,
            f"{method}<br>epoch %{{x}}<br>%{{y:.4g}}",
            "lines+markers",
            meta=method,
            line={**styles[method], "width": 2},
            # Many epochs are a line without beads.
            marker={"size": 5 if length < _BEADS else 1},
        )
        for method, values in series.items()
    ]
    rows = tuple(
        (i + 1, *(v[i] if i < len(v) else None for v in series.values())) for i in range(length)
    )
    return plot(
        name,
        title,
        data,
        table_of(("epoch", *series), rows, dict.fromkeys(series, ".5g")),
        x={"title": "epoch", "rangemode": "tozero"},
        y={"title": unit, **({"range": [0, 103]} if name.endswith("gradient") else {})},
        showlegend=showlegend,
        legend=LEGEND,
    )


def drift_plots(facts: Facts) -> list[Plot]:
    """One panel per score: its distribution in training and in test."""
    plots = []
    for drift in facts.drift:
        middles = [
            (logit(a) + logit(b)) / 2 for a, b in zip(drift.edges, drift.edges[1:], strict=False)
        ]
        filled = {"fill": "tozeroy", "fillcolor": "--soft"}
        data = [
            scatter(
                name,
                middles,
                [100 * v for v in values],
                f"{name}<br>%{{y:.2f}} % of rows",
                "lines",
                line={"shape": "hvh", "width": 2, "color": color},
                **look,
            )
            for name, values, color, look in (
                ("train", drift.train, MUTED, filled),
                ("test", drift.test, ACCENT, {}),
            )
        ]
        starts = drift.edges[:-1]
        plots.append(
            plot(
                f"drift-{drift.name}",
                f"{drift.name}: PSI {drift.psi:.3f}, KS {drift.ks:.3f}",
                data,
                table_of(
                    ("score from", "train", "test"),
                    tuple(zip(starts, drift.train, drift.test, strict=True)),
                    {"score from": ".3%", "train": ".2%", "test": ".2%"},
                ),
                x=logit_axis(f"score of {drift.name}", drift.edges[0], drift.edges[-1]),
                y={"title": "rows (%)", "rangemode": "tozero"},
                height=250,
                showlegend=False,
            )
        )
    return plots
