"""How fast worlds are drawn, what their ceilings are, and how far two simple fusions fall short.

    python benchmarks/worlds.py --json benchmarks/results/worlds.json

Every preset and three redraws of each are sampled with their truth. Wall and processor seconds
are both reported: on a shared machine the first says little.
"""

from itertools import product
from typing import Any

import numpy as np
from store import Rows, ceiling, clocked, exact, options

from harmonrank.fusion import method_class
from harmonrank.metrics import fit_isotonic
from harmonrank.worlds import PRESETS, AnyWorld, world
from harmonrank_lab.worlds import log_of

THREE = {"elive": ("buy", "follow", "long_view"), "qkvideo": ("click", "like", "follow")}


def one(name: str, redraw: int | None, rows: int) -> dict[str, Any]:
    drawn, build, _ = clocked(lambda: world(name, redraw=redraw))
    sample, wall, processor = clocked(lambda: drawn.sample(rows, seed=1))
    facts = {
        "world": name,
        "redraw": redraw,
        "rows": rows,
        "build_seconds": build,
        "sample_seconds": wall,
        "sample_processor_seconds": processor,
        "prevalence": dict(zip(drawn.objectives, sample.labels.mean(0).tolist(), strict=True)),
        "ceiling": ceiling(log_of(drawn, rows, 1, truth=True)),
    }
    if name in THREE:
        three = ceiling(log_of(drawn.subset(THREE[name]), rows, 1, truth=True))
        facts["three"] = {"objectives": THREE[name], "ceiling": three}
    return facts


def regrets(drawn: AnyWorld, rows: int) -> dict[str, float]:
    """Regret of calibrated own scores and of logistic regressions, both with optimal weights."""
    train, test = log_of(drawn, rows, 11), log_of(drawn, rows // 2, 12, truth=True)
    labels = train.known_labels()
    curves = [fit_isotonic(s, y) for s, y in zip(train.scores.T, labels.T, strict=True)]
    own = np.stack([np.interp(s, *c) for s, c in zip(test.scores.T, curves, strict=True)], axis=1)
    rate = labels.mean(axis=0)
    every = method_class("logistic")().fit(train, train.schema).score(test)
    fused = {"calibrated-own-score": own @ (1 / (rate * (1 - rate))), "logistic-on-all": every}
    return {name: ceiling(test) - exact(score, test) for name, score in fused.items()}


if __name__ == "__main__":
    given = options(__doc__, rows=2_000_000)
    world("elive").sample(1000, seed=0)  # compiles
    results = Rows(given.json, keep=False)
    for name, redraw in product(PRESETS, (None, 1, 2, 3)):
        facts = one(name, redraw, given.rows)
        if redraw is None:
            facts["regret"] = regrets(world(name), given.rows // 2)
        results.add(facts)
