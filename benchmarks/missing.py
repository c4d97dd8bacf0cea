"""What missing scores cost: regret to the exact ceiling of what is there.

    python benchmarks/missing.py --json benchmarks/results/missing.json

Scores of a world are hidden at random, in training and test rows alike, each with the same chance.
The ceiling is that of the exact posterior given the scores that are left. The default is fitted on
such rows as they are, and again on rows whose gaps hold the mean logit of the score; other methods
take the conditional mean of the score given the others, as they always do.
"""

from itertools import product

import numpy as np
from store import Rows, options

from harmonrank.data import Log, read_log
from harmonrank.fusion import method_class
from harmonrank.metrics import auc, best_score
from harmonrank.worlds import as_frame, world, world_schema


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

    def regret(method: str, rows: Log, tested: Log) -> float:
        fused = method_class(method)().fit(rows, schema, seed=seed).score(tested)
        return ceiling - float(auc(fused, truth).sum())

    filled = filled_by_means(train, train), filled_by_means(train, test)
    regrets = {"harmonrank": regret("harmonrank", train, test)}
    regrets["harmonrank, means"] = regret("harmonrank", *filled)
    regrets |= {method: regret(method, train, test) for method in ("logistic", "closed-form")}
    head = {"world": name, "share": share, "rows": rows, "seed": seed}
    return {**head, "ceiling": ceiling, "regret": regrets}


if __name__ == "__main__":
    given = options(
        __doc__,
        rows=50_000,
        seed=0,
        worlds=["elive", "conflict", "tails"],
        shares=[0.0, 0.03, 0.2, 0.5],
    )
    results = Rows(given.json, keep=False)
    for name, share in product(given.worlds, given.shares):
        results.add(measure(name, share, given.rows, given.seed))
