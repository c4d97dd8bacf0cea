"""Objectives of every kind: regret of methods in worlds, and what the first order loses.

    python benchmarks/kinds.py --json benchmarks/results/kinds.json

Labels of a world are drawn again, one objective graded, one given another, one unwanted
(docs/worlds.md); regret is to the documented score with the true draws. Then small worlds of six
rows, all of whose orders are tried: how far the documented score is below the best of them.
"""

from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from store import options, write

import harmonrank as hr
from harmonrank.data import Log, read_log
from harmonrank.fusion import best_terms, method_class, true_outcomes
from harmonrank.metrics import auc
from harmonrank.worlds import world
from harmonrank_lab.worlds import simulate

KINDS = {
    "qkvideo": {"graded": ("long_view",), "given": {"like": "click"}, "unwanted": ("share",)},
    "elive": {"graded": ("long_view",), "given": {"comment": "like"}, "unwanted": ("follow",)},
}
METHODS = ["harmonrank", "logistic", "lightgbm", "closed-form", "prevalence-weights"]
NAMES = ("click", "order", "watch")
COUNTED = {
    "events": ([1.0, -2.0, 0.0], {}),
    "seconds alone, draws ordered": ([0.0, 0.0, 1.0], {"ordered": True}),
    "seconds alone": ([0.0, 0.0, 1.0], {}),
    "click + seconds": ([1.0, 0.0, 1.0], {}),
    "order given click, alone": ([0.0, 1.0, 0.0], {"given": {"order": "click"}}),
    "click + order given click": ([1.0, 1.0, 0.0], {"given": {"order": "click"}}),
    "click + order given click + seconds": ([1.0, 1.0, 1.0], {"given": {"order": "click"}}),
}


def regrets(name: str, rows: int, seed: int, methods: list[str]) -> dict:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        simulate(world(name), rows, path, seed=seed, kinds=KINDS[name])
        schema = hr.Schema.read(path / "schema.toml")
        train, valid, test = (
            read_log(path / f"{part}.parquet", schema) for part in ("train", "valid", "test")
        )
    regret = {}
    for method in methods:
        model = method_class(method)().fit(train, schema, valid=valid, seed=seed)
        quality = model.evaluate(test)
        regret[method] = quality.regret
        print(f"{name} {method} regret {quality.regret:.4f}", flush=True)
    return {"world": name, "kinds": KINDS[name], "ceiling": quality.ceiling, "regret": regret}


def small_world(seed: int, rows: int = 6, *, ordered: bool = False, given: dict | None = None):
    rng = np.random.default_rng(seed)
    schema = hr.Schema(
        {name: f"p_{name}" for name in NAMES},
        truth={name: f"true_{name}" for name in NAMES},
        graded=["watch"],
        given=given or {},
    )
    p = rng.beta(1, 2, (rows, 3))
    spread = 1.0 if ordered else rng.choice([0.3, 1.0, 3.0], (rows, 1))
    density = rng.normal(size=(rows, 1)) + spread * np.sort(rng.normal(size=(1, 5)))
    truth = np.concatenate([p[:, :2], density.mean(axis=1, keepdims=True)], axis=1)
    return Log(schema, p, pl.DataFrame(), truth=truth, draws={"watch": density})


def loss_of(log: Log, weights: np.ndarray) -> float:
    truth, used = true_outcomes(log), np.flatnonzero(weights)
    some, w = truth.columns(used), weights[used]
    orders = permutations(np.arange(float(log.rows)))
    best = max(float(w @ auc(np.array(order), some)) for order in orders)
    return best - float(w @ auc(best_terms(log, weights) @ weights, some))


def orders(draws: int) -> list[dict]:
    results = []
    for what, (weights, kind) in COUNTED.items():
        losses = [loss_of(small_world(seed, **kind), np.array(weights)) for seed in range(draws)]
        results.append({"counted": what, "mean": float(np.mean(losses)), "largest": max(losses)})
        print(results[-1], flush=True)
    return results


if __name__ == "__main__":
    given = options(__doc__, rows=50_000, seed=0, draws=25, methods=METHODS)
    small = orders(given.draws)
    results = [regrets(name, given.rows, given.seed, given.methods) for name in KINDS]
    head = {"rows": given.rows, "seed": given.seed}
    write(given.json, {**head, "results": results, "orders": small})
