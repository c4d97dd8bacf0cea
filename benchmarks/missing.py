"""What missing scores cost: regret to the exact ceiling of what is there.

    python benchmarks/missing.py --json benchmarks/results/missing.json

Scores of a world are hidden at random, in training and test rows alike, each with the same chance.
The ceiling is that of the exact posterior given the scores that are left. The default is fitted on
such rows as they are, and again on rows whose gaps hold the mean logit of the score; other methods
take the conditional mean of the score given the others, as they always do.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from harmonrank.data import Log, read_log
from harmonrank.fusion import method_class
from harmonrank.metrics import auc, best_score
from harmonrank.worlds import world
from harmonrank.worlds.simulation import as_frame, world_schema

OTHERS = ("logistic", "closed-form")


def with_gaps(log: Log, share: float, seed: int) -> Log:
    lost = np.random.default_rng(seed).random(log.scores.shape) < share
    return log.with_scores(np.where(lost, np.nan, log.scores.astype(np.float64)))


def filled_by_means(train: Log, log: Log) -> Log:
    mean = np.nanmean(np.log(train.scores) - np.log1p(-train.scores), axis=0)
    return log.with_scores(np.where(np.isnan(log.scores), 1 / (1 + np.exp(-mean)), log.scores))


def measure(name: str, share: float, rows: int, seed: int) -> dict:
    place = world(name)
    schema = world_schema(place)
    samples = [place.sample(rows, seed=seed, start=start) for start in (0, rows)]
    logs = [read_log(as_frame(place, sample), schema) for sample in samples]
    train, test = (with_gaps(log, share, seed + n) for n, log in enumerate(logs))
    truth = place.posterior(test.scores, samples[1].context, samples[1].time)
    ceiling = float(auc(best_score(truth), truth).sum())

    def regret(method: str, rows: Log, exam: Log) -> float:
        fused = method_class(method)().fit(rows, schema, seed=seed).score(exam)
        return ceiling - float(auc(fused, truth).sum())

    filled = filled_by_means(train, train), filled_by_means(train, test)
    found = {"harmonrank": regret("harmonrank", train, test)}
    found["harmonrank, means"] = regret("harmonrank", *filled)
    found |= {method: regret(method, train, test) for method in OTHERS}
    return {"world": name, "share": share, "ceiling": ceiling, "regret": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worlds", nargs="+", default=["elive", "conflict", "tails"])
    parser.add_argument("--shares", nargs="+", type=float, default=[0.0, 0.03, 0.2, 0.5])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = []
    for name in options.worlds:
        for share in options.shares:
            results.append(measure(name, share, options.rows, options.seed))
            regrets = "  ".join(f"{k} {v:.4f}" for k, v in results[-1]["regret"].items())
            print(
                f"{name} {share:.0%}  ceiling {results[-1]['ceiling']:.4f}  {regrets}", flush=True
            )
    if options.json:
        head = {"rows": options.rows, "seed": options.seed}
        options.json.write_text(json.dumps({**head, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
