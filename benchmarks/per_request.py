"""Fits for AUC over all rows and within requests: exact regret of both, by world.

    python benchmarks/per_request.py --json benchmarks/results/per_request.json
    python benchmarks/per_request.py --methods harmonrank-paper --rows 50000 --seeds 0 --add \
        --worlds requests elive --json benchmarks/results/per_request.json

Seed s is the preset for 0 and its redraw s otherwise. Regrets are by true probabilities: `within`
of per-request AUC-sum, whose ceiling in the world `requests` knows what the rows of a request
share, as no function of the row does; `all` of the AUC-sum over all rows. `perfect heads` are the
exact probabilities given the row alone, weighted for all rows, and by what a fit for requests makes
of them: what the default would be with endless data.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter

import numpy as np

from harmonrank.fusion import method_class
from harmonrank.metrics import auc, best_request_score, best_score, expected_grouped_auc
from harmonrank.model.requests.request_fit import fit_request_weights
from harmonrank.worlds import world
from harmonrank.worlds.simulation import as_frame, world_schema

# Methods that can be fitted for either, and their options; the network is trained shortly.
BOTH = {
    "harmonrank": {},
    "harmonrank-paper": {"steps": 800, "patience_steps": 800, "batch_rows": 8_000},
}


def measure(name: str, rows: int, seed: int, methods: list[str]) -> dict:
    place = world(name, redraw=seed or None)
    train = place.sample(rows, seed=seed, with_truth=False)
    test = place.sample(100_000, seed=seed, start=rows)
    schema, tables = world_schema(place), [as_frame(place, sample) for sample in (train, test)]
    truth, request = test.truth, test.request
    within = float(expected_grouped_auc(best_request_score(truth, request), truth, request).sum())
    ceiling = float(auc(best_score(truth), truth).sum())

    def regrets(fused: np.ndarray) -> dict:
        reached = float(expected_grouped_auc(fused, truth, request).sum())
        return {"within": within - reached, "all": ceiling - float(auc(fused, truth).sum())}

    found = {}
    for method in methods:
        for optimise in ("all", "requests") if method in BOTH else ("all",):
            options = {"optimise": optimise, **BOTH[method]} if method in BOTH else {}
            began = perf_counter()
            model = method_class(method)(**options).fit(tables[0], schema, seed=seed)
            key = method if optimise == "all" else f"{method}, {optimise}"
            found[key] = {**regrets(model.score(tables[1])), "seconds": perf_counter() - began}
    if place.requests is not None and "harmonrank" in methods:
        p, own = (place.posterior(sample.scores, sample.context) for sample in (train, test))
        found["perfect heads"] = regrets(best_score(own))
        weights = fit_request_weights(p, train.request, train.labels, np.ones(p.shape[1]))
        found["perfect heads, requests"] = regrets(weights.parts(own).sum(axis=1))
    return {
        "world": name,
        "rows": rows,
        "seed": seed,
        "ceiling": {"within": within, "all": ceiling},
        "methods": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worlds", nargs="+", default=["requests", "elive", "tails"])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", default=["harmonrank", "logistic", "lightgbm"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--add", action="store_true", help="to the results that are there")
    options = parser.parse_args()
    results = []
    if options.add and options.json and options.json.exists():
        results = json.loads(options.json.read_text())["results"]
    for seed in options.seeds:
        for name in options.worlds:
            results.append(measure(name, options.rows, seed, options.methods))
            parts = [f"{k} {v['within']:.4f}" for k, v in results[-1]["methods"].items()]
            print(f"{name} {options.rows:,} rows, seed {seed}:  {'  '.join(parts)}", flush=True)
            if options.json:
                options.json.write_text(json.dumps({"results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
