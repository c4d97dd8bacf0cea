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
from math import log
from pathlib import Path
from statistics import mean
from typing import Any

from harmonrank.reports.figures import regret_plot
from harmonrank.reports.pictures import write_picture

ROOT = Path(__file__).parents[1]
TITLE = "Regret: how far below the best possible AUC-sum (further left is better)"


def regrets_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return each method's mean regret by world; the method with the least, on the whole, first."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if "regret" in row:
            found[row["method"]][row["world"]].append(row["regret"])
    means = {m: {w: mean(values) for w, values in each.items()} for m, each in found.items()}
    # Regrets differ by orders of magnitude from world to world, so logarithms are averaged.
    return dict(sorted(means.items(), key=lambda pair: mean(map(_log, pair[1].values()))))


def _log(regret: float) -> float:
    return log(max(regret, 1e-6))


def main(source: Path, target: Path) -> None:
    regrets = regrets_of(json.loads(source.read_text(encoding="utf-8"))["results"])
    write_picture(regret_plot(TITLE, regrets), target)
    if target.suffix == ".svg":
        with target.open("a", encoding="utf-8") as file:
            file.write(mark_of(regrets))


def mark_of(regrets: Mapping[str, Mapping[str, float]]) -> str:
    """Return a comment by which a test knows that a figure shows these regrets."""
    shown = {m: {w: f"{value:.3g}" for w, value in found.items()} for m, found in regrets.items()}
    return f"<!-- {sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()} -->\n"


if __name__ == "__main__":
    paths = [Path(path) for path in sys.argv[1:]]
    main(
        *[
            *paths,
            *[ROOT / "benchmarks/results/regret.json", ROOT / "docs/regret.svg"][len(paths) :],
        ]
    )
