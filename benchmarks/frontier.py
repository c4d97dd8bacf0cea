"""One fit with its weights moved, beside fits for these very weights.

    python benchmarks/frontier.py --rows 50000 --json benchmarks/results/frontier.json

For each world and each set of weights: the AUC of every objective by true probabilities, of the one
fit of the default and of methods that are fitted again for the weights; what is compared is the
mean AUC by these weights.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from store import options, write

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.evaluation import Sweep
from harmonrank.fusion import method_class
from harmonrank.metrics import auc
from harmonrank.worlds import as_frame, world, world_schema

RIVALS = ["harmonrank", "logistic", "lightgbm", "harmonrank-paper"]
HEAVY = 8.0


def weightings(names: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Return weights all alike, a rare or a common objective heavy, and the two alone."""
    first, last = names[0], names[-1]
    weights_of = {"all alike": dict.fromkeys(names, 1.0)}
    for name in (first, last):
        weights_of[f"{name} × {HEAVY:g}"] = {
            other: HEAVY if other == name else 1.0 for other in names
        }
    weights_of[f"{first} and {last} only"] = {n: float(n in (first, last)) for n in names}
    return weights_of


def figures(weights: np.ndarray, areas: np.ndarray) -> dict[str, Any]:
    return {"auc": areas.tolist(), "mean": float(weights @ areas / weights.sum())}


def measured(name: str, rows: int, rivals: list[str]) -> list[dict[str, Any]]:
    place = world(name)
    schema = world_schema(place)
    train = as_frame(place, place.sample(rows, seed=0, with_truth=False))
    log = read_log(as_frame(place, place.sample(rows, seed=0, start=rows)), schema)
    sweep = Sweep.of(hr.HarmonRank().fit(train, schema), log, rows=rows)
    fits = []
    for what, weights in weightings(schema.names).items():
        vector = np.array(list(weights.values()))
        row: dict[str, Any] = {"world": name, "what": what, "weights": weights}
        row["one fit"] = figures(vector, sweep.areas(vector))
        row["best possible"] = figures(vector, sweep.best.areas(vector))
        for rival in rivals:
            fitted = method_class(rival)().fit(train, replace(schema, weights=weights))
            row[rival] = figures(vector, auc(fitted.score(log), log.truth))
            print(name, what, rival, row[rival]["mean"], flush=True)
        fits.append(row)
    return fits


if __name__ == "__main__":
    given = options(__doc__, rows=50_000, worlds=["conflict", "elive"], methods=RIVALS)
    points = [row for name in given.worlds for row in measured(name, given.rows, given.methods)]
    ahead = {r: max(p[r]["mean"] - p["one fit"]["mean"] for p in points) for r in given.methods}
    write(given.json, {"rows": given.rows, "most_ahead_of_one_fit": ahead, "points": points})
