"""Charts of the rows and of training: how objectives relate, drift of scores, epochs."""

__all__ = ["correlation_plots", "drift_plots", "epoch_plots", "heatmap", "training_plots"]

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from harmonrank.reports.facts import Facts
from harmonrank.reports.figures.methods import method_styles
from harmonrank.reports.plots import ACCENT, INK, MUTED, Plot, line, logit, logit_axis, plot
from harmonrank.reports.stability import Stability
from harmonrank.support.table import table_of

_CELL = 22
_MOST_DIGITS = 12  # of objectives; beyond, cells are too small for numbers
_BEADS = 60


def correlation_plots(facts: Facts) -> list[Plot]:
    """Labels beside attention, then scores and true probabilities, each an M × M heatmap."""
    data, names = facts.data, facts.board.objectives
    matrices = [
        ("labels", "Labels (Spearman)", data.label_correlation),
        ("scores", "Scores (Spearman)", data.score_correlation),
        ("truth", "True probabilities (Spearman)", data.truth_correlation),
    ]
    plots = [heatmap(names, n, t, m, "diverging") for n, t, m in matrices if len(m) > 1]
    for name, matrix in facts.attention.items():
        key, title = f"attention-{name}", f"Attention of {name}"
        plots.insert(1, heatmap(names, key, title, matrix, "sequential"))
    return plots


def heatmap(
    objectives: Sequence[str], name: str, title: str, matrix: Sequence[Sequence[float]], scale: str
) -> Plot:
    """Return an M × M chart; a 'diverging' one is of correlations, a 'sequential' one of shares."""
    signed = scale == "diverging"
    # A correlation of 1 with itself would hide all others, which are smaller.
    off = [abs(v) for i, row in enumerate(matrix) for j, v in enumerate(row) if i != j and v == v]
    # Somewhat beyond the largest, so that numbers can be read on its colour.
    reach = 1.25 * (max([0.1, *off]) if signed else max(v for row in matrix for v in row))
    cells = [
        [None if signed and i == j else v for j, v in enumerate(row)]
        for i, row in enumerate(matrix)
    ]
    digits = "%{z:.2f}" if signed else "%{z:.3f}"
    heat = {
        "type": "heatmap",
        "x": list(objectives),
        "y": list(objectives),
        "z": cells,
        "zmin": -reach if signed else 0,
        "zmax": reach,
        "colorscale": f"--scale-{scale}",
        # Attention hardly leaves 1/M; a third digit shows where it does.
        "texttemplate": digits if len(objectives) <= _MOST_DIGITS else "",
        "textfont": {"color": INK},
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hovertemplate": "%{y}, %{x}: %{z:.3f}<extra></extra>",
    }
    names = {"type": "category", "showgrid": False, "dtick": 1}
    rows = [(o, *row) for o, row in zip(objectives, matrix, strict=True)]
    return plot(
        f"relation-{name}" if signed else name,
        title,
        [heat],
        table_of(("", *objectives), rows, dict.fromkeys(objectives, ".3f")),
        x={"title": "objective" if signed else "attends to", **names, "tickangle": -35},
        y={"title": "objective", "autorange": "reversed", **names},
        height=max(320, 130 + _CELL * len(objectives)),
    )


def drift_plots(facts: Facts) -> list[Plot]:
    """One panel per score: its distribution in training and in test."""
    return [_drift(moved) for moved in facts.drift]


def _drift(moved: Stability) -> Plot:
    middles = [(logit(a) + logit(b)) / 2 for a, b in pairwise(moved.edges)]
    filled = {"fill": "tozeroy", "fillcolor": "--soft"}
    data = [
        line(
            name,
            middles,
            [100 * v for v in values],
            "%{y:.2f} % of rows",
            {"shape": "hvh", "color": color},
            **look,
        )
        for name, values, color, look in (
            ("train", moved.train, MUTED, filled),
            ("test", moved.test, ACCENT, {}),
        )
    ]
    formats = {"score from": ".3%", "train": ".2%", "test": ".2%"}
    rows = zip(moved.edges[:-1], moved.train, moved.test, strict=True)
    return plot(
        f"drift-{moved.name}",
        f"{moved.name}: PSI {moved.psi:.3f}, KS {moved.ks:.3f}",
        data,
        table_of(tuple(formats), rows, formats),
        x=logit_axis(f"score of {moved.name}", moved.edges[0], moved.edges[-1]),
        y={"title": "rows (%)", "rangemode": "tozero"},
        height=250,
    )


def training_plots(facts: Facts) -> list[Plot]:
    """Validation AUC-sum, training loss and the share of items in gradient, by epoch."""
    runs = {n: f.epochs for n, f in facts.methods.items() if f.epochs}
    return epoch_plots("training", runs, method_styles(facts))


def epoch_plots(
    name: str,
    runs: Mapping[str, Sequence[Sequence[float | None]]],
    looks: Mapping[str, Mapping[str, Any]],
    *,
    showlegend: bool = False,
) -> list[Plot]:
    """Draw what each epoch of some runs had: loss, validation AUC-sum, share in gradient."""
    valid = {n: [e[1] for e in epochs] for n, epochs in runs.items()}
    loss = {n: _change([e[0] for e in epochs]) for n, epochs in runs.items()}
    gradient = {n: [100 * e[2] for e in each if e[2] is not None] for n, each in runs.items()}
    parts: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
        ("valid", "Validation AUC-sum", {"title": "AUC-sum (no unit)"}, valid),
        ("loss", "Training loss", {"title": "change since epoch 1 (%)"}, loss),
        ("gradient", "Items in gradient", {"title": "share (%)", "range": [0, 103]}, gradient),
    ]
    return [
        _epochs(f"{name}-{part}", title, y, values, looks, showlegend)
        for part, title, y, values in parts
        if any(values.values())
    ]


def _change(losses: Sequence[Any]) -> list[float]:
    """Return the change since the first, in percent of its size; losses have units of their own."""
    return [100 * (loss - losses[0]) / abs(losses[0]) for loss in losses] if losses[0] else []


def _epochs(
    name: str,
    title: str,
    y: Mapping[str, Any],
    values: Mapping[str, Sequence[Any]],
    looks: Mapping[str, Mapping[str, Any]],
    showlegend: bool,
) -> Plot:
    series = {n: v for n, v in values.items() if v}
    epochs = range(1, max(map(len, series.values())) + 1)
    # Many epochs are a line without beads.
    marker = {"size": 5 if len(epochs) < _BEADS else 1}
    hover, mode = "epoch %{x}<br>%{y:.4g}", "lines+markers"
    data = [
        line(method, list(epochs[: len(v)]), v, hover, looks[method], mode, marker=marker)
        for method, v in series.items()
    ]
    rows = [(i, *(v[i - 1] if i <= len(v) else None for v in series.values())) for i in epochs]
    return plot(
        name,
        title,
        data,
        table_of(("epoch", *series), rows, dict.fromkeys(series, ".5g")),
        x={"title": "epoch", "rangemode": "tozero"},
        y=y,
        showlegend=showlegend,
    )
