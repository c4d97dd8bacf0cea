"""One fit with its weights moved, beside fits for these very weights.

    python benchmarks/frontier.py --rows 50000

For each world and each set of weights: the AUC of every objective by true probabilities, of the one
fit of the default and of methods that are fitted again for the weights; what is compared is the
mean AUC by these weights.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.evaluation.frontier import Sweep
from harmonrank.fusion import method_class
from harmonrank.metrics import auc
from harmonrank.support.storage.files import write_json
from harmonrank.worlds import world
from harmonrank.worlds.simulation import as_frame, world_schema

RESULT = Path(__file__).parent / "results" / "frontier.json"
WORLDS = ("conflict", "elive")
RIVALS = ("harmonrank", "harmonrank-network", "logistic", "lightgbm", "harmonrank-paper")
# All alike, a rare or a common objective heavy, and the two against each other.
HEAVY = 8.0


def weightings(names: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Return the weights to compare at, by what they are."""
    found = {"all alike": dict.fromkeys(names, 1.0)}
    for name in (names[0], names[-1]):
        found[f"{name} × {HEAVY:g}"] = {other: HEAVY if other == name else 1.0 for other in names}
    first, last = names[0], names[-1]
    found[f"{first} and {last} only"] = {n: float(n in (first, last)) for n in names}
    return found


def measured(name: str, rows: int, rivals: list[str]) -> list[dict[str, Any]]:
    """Compare in one world."""
    place = world(name)
    schema = world_schema(place)
    train = as_frame(place, place.sample(rows, seed=0, with_truth=False))
    test = as_frame(place, place.sample(rows, seed=0, start=rows))
    log = read_log(test, schema)
    sweep = Sweep.of(hr.HarmonRank().fit(train, schema), log, rows=rows)
    assert log.truth is not None
    found = []
    for what, weights in weightings(schema.names).items():
        vector = np.array(list(weights.values()))
        row: dict[str, Any] = {"world": name, "what": what, "weights": weights}
        row["one fit"] = _figures(vector, sweep.areas(vector))
        assert sweep.best is not None
        row["best possible"] = _figures(vector, sweep.best.areas(vector))
        for rival in rivals:
            started = time.perf_counter()
            fitted = method_class(rival)().fit(train, replace(schema, weights=weights))
            row[rival] = _figures(vector, auc(fitted.score(log), log.truth))
            seconds = time.perf_counter() - started
            print(name, what, rival, row[rival]["mean"], f"{seconds:.0f} s", flush=True)
        found.append(row)
    return found


def _figures(weights: np.ndarray, areas: np.ndarray) -> dict[str, Any]:
    return {"auc": areas.tolist(), "mean": float(weights @ areas / weights.sum())}


def main() -> None:
    """Compare in all worlds and store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--methods", default=",".join(RIVALS))
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    rivals = options.methods.split(",")
    points = [row for name in WORLDS for row in measured(name, options.rows, rivals)]
    command = f"python benchmarks/frontier.py {' '.join(sys.argv[1:])}".strip()
    ahead = {r: max(row[r]["mean"] - row["one fit"]["mean"] for row in points) for r in rivals}
    write_json(
        options.output,
        {
            "command": command,
            "rows": options.rows,
            "most_ahead_of_one_fit": ahead,
            "points": points,
        },
    )


if __name__ == "__main__":
    main()
