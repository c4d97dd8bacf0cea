"""Draw the README's figure, regrets on a log scale, from stored results.

    python benchmarks/figure.py

reads benchmarks/results/regret.json and writes docs/regret.svg; other paths may be given in this
order. It shows whatever worlds and methods the results hold, means over seeds, and needs Plotly
and a Chromium browser as `--figures` does.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import sha256
from math import log, log10
from pathlib import Path
from statistics import mean
from typing import Any

from harmonrank.reports import plots
from harmonrank.reports.pictures import write_picture
from harmonrank.support.table import table_of

ROOT = Path(__file__).parents[1]
TITLE = "Regret: how far below the best possible AUC-sum (further left is better)"
_LEAST = 1e-6
_SYMBOLS = ("circle", "diamond", "square", "triangle-up")


def regrets_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return each method's mean regret by world; the method with the least, on the whole, first."""
    every: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if "regret" in row:
            every[row["method"]][row["world"]].append(row["regret"])
    means = {m: {w: mean(values) for w, values in each.items()} for m, each in every.items()}
    # Regrets differ by orders of magnitude from world to world, so logarithms are averaged.
    return dict(sorted(means.items(), key=lambda pair: mean(map(_log, pair[1].values()))))


def _log(regret: float) -> float:
    return log(max(regret, _LEAST))


def regret_plot(title: str, regrets: Mapping[str, Mapping[str, float]]) -> plots.Plot:
    """Draw each method's regret in each world, a row per method, on a log scale.

    Args:
        title: Above the chart.
        regrets: By method, in order, and world; a method may lack a world.
    """
    worlds = list(dict.fromkeys(world for each in regrets.values() for world in each))
    shown = {m: {w: max(r, _LEAST) for w, r in each.items()} for m, each in regrets.items()}
    every = [regret for each in shown.values() for regret in each.values()]
    data = [_stems(shown), *(_dots(shown, world, place) for place, world in enumerate(worlds))]
    rows = [(method, *(each.get(w) for w in worlds)) for method, each in shown.items()]
    ends = [log10(min(every) / 2), log10(max(every) * 2)]
    scale = {"type": "log", "range": ends, "dtick": 1, "tickformat": ".6~f"}
    return plots.plot(
        "regret",
        title,
        data,
        table_of(("method", *worlds), rows, dict.fromkeys(worlds, ".5f")),
        x={"title": "regret in AUC-sum (log)", **scale},
        y={**plots.ROWS, "showgrid": False},
        height=140 + plots.ROW * len(shown),
        wide=True,
        showlegend=True,
    )


def _stems(shown: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Return a thin line per method, from its least regret to its largest."""
    ends = {m: (min(each.values()), max(each.values())) for m, each in shown.items() if each}
    x = [v for low, high in ends.values() for v in (low, high, None)]
    y = [v for method in ends for v in (method, method, None)]
    thin = {"color": plots.MUTED, "width": 1}
    return plots.scatter("", x, y, "", "lines", line=thin, hoverinfo="skip", showlegend=False)


def _dots(shown: Mapping[str, Mapping[str, float]], world: str, place: int) -> dict[str, Any]:
    own = {method: each[world] for method, each in shown.items() if world in each}
    color, symbol = plots.PALETTE[place % len(plots.PALETTE)], _SYMBOLS[place % len(_SYMBOLS)]
    return plots.scatter(
        world,
        list(own.values()),
        list(own),
        f"%{{y}}<br>{world} %{{x:.4f}}",
        marker={"size": 10, "color": color, "symbol": symbol},
        text=[f"{regret:.4f}" for regret in own.values()],
        textposition="middle right",
    )


def main(source: Path, target: Path) -> None:
    regrets = regrets_of(json.loads(source.read_text(encoding="utf-8"))["results"])
    write_picture(regret_plot(TITLE, regrets), target)
    if target.suffix == ".svg":
        with target.open("a", encoding="utf-8") as file:
            file.write(mark_of(regrets))


def mark_of(regrets: Mapping[str, Mapping[str, float]]) -> str:
    """Return a comment by which a test knows that a figure shows these regrets."""
    shown = {m: {w: f"{value:.3g}" for w, value in row.items()} for m, row in regrets.items()}
    return f"<!-- {sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()} -->\n"


if __name__ == "__main__":
    paths = [Path(path) for path in sys.argv[1:]]
    main(
        *[
            *paths,
            *[ROOT / "benchmarks/results/regret.json", ROOT / "docs/regret.svg"][len(paths) :],
        ]
    )
