"""What charts share: a method's colour and dash, the line of the ceiling, heatmaps."""

__all__ = ["ceiling_line", "heatmap", "style", "zero_line"]

from collections.abc import Sequence
from typing import Any

from harmonrank.reports.facts import Facts
from harmonrank.reports.plots import DASHES, INK, PALETTE, Plot, plot
from harmonrank.support.table import table_of

_CELL = 22
_MOST_DIGITS = 12  # of objectives; beyond, cells are too small for numbers


def style(facts: Facts, name: str) -> dict[str, Any]:
    """Return a method's colour and dash, the same in every chart."""
    place = list(facts.board.qualities).index(name)
    return {
        "color": PALETTE[place % len(PALETTE)],
        "dash": DASHES[place // len(PALETTE) % len(DASHES)],
    }


def ceiling_line(ceiling: float) -> dict[str, Any]:
    """Return a dashed line at the best possible, as parts of a layout."""
    line = {"color": PALETTE[1], "width": 2, "dash": "dash"}
    return {
        "shapes": [
            {
                "type": "line",
                "x0": ceiling,
                "x1": ceiling,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": line,
            }
        ],
        "annotations": [
            {
                "x": ceiling,
                "y": 1,
                "yref": "paper",
                "yanchor": "bottom",
                "xanchor": "center",
                "showarrow": False,
                "text": f"ceiling {ceiling:.4f}",
                "font": {"color": PALETTE[1]},
            }
        ],
    }


def zero_line() -> dict[str, Any]:
    """Return an upright line at 0, as a shape of a layout."""
    line = {"color": INK, "width": 1.5}
    return {"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "paper", "line": line}


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
    return plot(
        f"relation-{name}" if signed else name,
        title,
        [heat],
        table_of(
            ("", *objectives),
            tuple((o, *row) for o, row in zip(objectives, matrix, strict=True)),
            dict.fromkeys(objectives, ".3f"),
        ),
        x={"title": "objective" if signed else "attends to", **names, "tickangle": -35},
        y={"title": "objective", "autorange": "reversed", **names},
        height=max(320, 130 + _CELL * len(objectives)),
    )
