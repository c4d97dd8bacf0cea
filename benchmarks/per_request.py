"""Fits for AUC over all rows and within requests: exact regret of both, by world.

    python benchmarks/per_request.py --json benchmarks/results/per_request.json

Seed s is the preset for 0 and its redraw s otherwise. Regrets are by true probabilities: `within`
of per-request AUC-sum, whose ceiling in the world `requests` knows what the rows of a request
share, as no function of the row does; `all` of the AUC-sum over all rows. `perfect heads` are the
exact probabilities given the row alone, weighted for all rows, and by what a fit for requests makes
of them: what the default would be with endless data.
"""

from itertools import product

import numpy as np
from store import Rows, clocked, options

from harmonrank.fusion import method_class
from harmonrank.metrics import auc, best_request_score, best_score, expected_grouped_auc
from harmonrank.model import fit_request_weights
from harmonrank.worlds import as_frame, world, world_schema

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

    results = {}
    for method, optimise in product(methods, ("all", "requests")):
        if method not in BOTH and optimise == "requests":
            continue
        given = {"optimise": optimise, **BOTH[method]} if method in BOTH else {}
        kind = method_class(method)
        model, seconds, _ = clocked(
            lambda k=kind, o=given: k(**o).fit(tables[0], schema, seed=seed)
        )
        key = method if optimise == "all" else f"{method}, {optimise}"
        results[key] = {**regrets(model.score(tables[1])), "seconds": seconds}
    if name == "requests" and "harmonrank" in methods:
        p, own = (place.posterior(sample.scores, sample.context) for sample in (train, test))
        results["perfect heads"] = regrets(best_score(own))
        weights = fit_request_weights(p, train.request, train.labels, np.ones(p.shape[1]))
        if weights is not None:
            results["perfect heads, requests"] = regrets(weights.parts(own).sum(axis=1))
    head = {
        "world": name,
        "rows": rows,
        "seed": seed,
        "ceiling": {"within": within, "all": ceiling},
    }
    return {**head, "methods": results}


if __name__ == "__main__":
    given = options(
        __doc__, rows=100_000, seeds=[0, 1, 2], worlds=["requests", "elive", "tails"],
        methods=["harmonrank", "logistic", "lightgbm"],
    )  # fmt: skip
    results = Rows(given.json, keep=False)
    for seed, name in product(given.seeds, given.worlds):
        results.add(measure(name, given.rows, seed, given.methods))
