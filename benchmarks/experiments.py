"""The simulated platform of docs/online.md: an experiment on it, and estimates from its logs.

    python benchmarks/experiments.py online --json benchmarks/results/online-elive.json
    python benchmarks/experiments.py offline --world qkvideo --json benchmarks/results/offline.json

`online`: five days of an experiment, measured lifts beside exact ones. `offline`: do intervals of
off-policy estimates cover, and do lifts come true? The platform logs requests that a production
score ranks. Truth is by the true chance of every answer in other requests of the same platform.
Coverage: of so many logs, how many have intervals that hold the true value, and the true lift over
production. `random share`: 5 of 20 candidates are shown, a third of the requests in random order,
estimated from these, with the true examination curve and with one that a fit estimated; `as
ranked`: all 10 candidates are shown, no request in random order, the curve estimated. Rank
correlation: over ten pairs of models.
"""

from copy import copy
from dataclasses import replace

import numpy as np
from store import options, write

from harmonrank.data import Schema
from harmonrank.evaluation import Baseline, OfflineResult, offline
from harmonrank.fusion import Method, method_class
from harmonrank.metrics import spearman
from harmonrank.worlds import world, world_schema
from harmonrank_lab.experiments.online import (
    RANDOMISED,
    OnlineConfig,
    candidate_scores,
    run_online,
    shown_log,
    shown_requests,
    true_values,
)
from harmonrank_lab.worlds import World

PLATFORMS = {"random share": (20, 5, 1 / 3), "as ranked": (10, 10, 0.0)}
PARTS = ("snips", "robust", "snips_lift", "robust_lift")
VALUE = (1.0, 5.0, 20.0, 20.0, 1.0)


class Platform:
    """Requests of a world, the score that ranks them, and what is true there."""

    def __init__(self, place: World, requests: int, candidates: int, top_k: int, share: float):
        known = world_schema(place)
        self.world, self.share = place, share
        self.schema = Schema(known.objectives, known.context, known.request, position="position")
        self.config = OnlineConfig(
            users=50_000, days=1, hours=1, requests_per_hour=requests,
            candidates=candidates, top_k=top_k,
        )  # fmt: skip
        self.today = f"p_{place.objectives[0]}"
        self.curve = dict(enumerate(self.config.examination().tolist(), 1))

    def log(self, seed: int, requests: int | None = None):
        hour = self._hour(seed, requests)
        fused = candidate_scores(hour, self.world, production)
        return shown_log(hour, self.world, fused, self.config, share=self.share, seed=seed)

    def truth(self, scores: list, requests: int = 50_000, seed: int = 10_000) -> list[np.ndarray]:
        hour = self._hour(seed, requests)
        return [
            true_values(hour, candidate_scores(hour, self.world, score), self.config)
            for score in scores
        ]

    def _hour(self, seed: int, requests: int | None):
        count = requests or self.config.requests_per_hour
        return shown_requests(self.world, replace(self.config, requests_per_hour=count), seed)

    def estimate(self, model: Method, log, k: int, **options) -> OfflineResult:
        today = Baseline.read(log, self.today)
        column = RANDOMISED if self.share else None
        options = {"against": today, **options}
        return offline(model, log, k=k, randomised=column, **options)


def production(log) -> np.ndarray:
    """Rank by the first objective's score, as a feed that is tuned for it."""
    return log.scores[:, 0].astype(np.float64)


def placed(model: Method, **parts: object) -> Method:
    """Return a model with other parts of its schema: a column of places, an examination curve."""
    changed = copy(model)
    changed._schema = replace(model.schema, **parts)
    return changed


def coverage(place: World, requests: int, runs: int) -> list[dict]:
    rows = []
    for name, (candidates, top_k, share) in PLATFORMS.items():
        platform = Platform(place, requests, candidates, top_k, share)
        model = method_class("closed-form")().fit(platform.log(1, 10_000), platform.schema)
        true, today = platform.truth([model.score, production])
        if name == "as ranked":
            ways = {"estimated": model}
        else:
            ways = {"given": placed(model, examination=platform.curve), "estimated": model}
        held = {way: np.zeros((len(PARTS), len(true)), int) for way in ways}
        for run in range(runs):
            log = platform.log(100 + run)
            for way, each in ways.items():
                result = platform.estimate(each, log, top_k)
                held[way] += inside(result, true, 100 * (true / today - 1))
            print(
                name, run + 1, {way: h.min(axis=1).tolist() for way, h in held.items()}, flush=True
            )
        names = place.objectives
        for way, counts in held.items():
            covered = {p: dict(zip(names, c.tolist(), strict=True))
                       for p, c in zip(PARTS, counts, strict=True)}  # fmt: skip
            rows.append({"platform": name, "curve": way, "k": top_k, "covered": covered})
    return rows


def inside(result: OfflineResult, value: np.ndarray, lift: np.ndarray) -> np.ndarray:
    """Return which intervals hold the truth, (parts, objectives)."""
    rows = []
    for part in PARTS:
        truth = lift if part.endswith("lift") else value
        ends = [getattr(one, part) for one in result.objectives]
        rows.append([e.low <= t <= e.high for e, t in zip(ends, truth, strict=True)])
    return np.array(rows, dtype=int)


def pairs(place: World, requests: int) -> dict:
    """Estimate ten lifts from one log, and compare them with the true ones."""
    platform = Platform(place, requests, *PLATFORMS["random share"])
    train = platform.log(1, 10_000)
    naive = replace(platform.schema, position=None)
    shown = train.filter(train["position"].is_not_null())
    kinds = ("closed-form", "prevalence-weights", "logistic", "harmonrank")
    fitted = {kind: method_class(kind)().fit(train, platform.schema) for kind in kinds}
    only = {f"logistic, {name} alone": {n: float(n == name) for n in place.objectives}
            for name in place.objectives}  # fmt: skip
    models = {kind: (model, None) for kind, model in fitted.items()}
    models |= {name: (fitted["logistic"], weights) for name, weights in only.items()}
    biased = method_class("logistic")().fit(shown, naive)
    known = fitted["logistic"].schema
    seen = {"position": known.position, "examination": known.examination}
    models["logistic, places ignored"] = (placed(biased, **seen), None)
    log = platform.log(2)
    today, *truth = platform.truth([production, *(scorer(m, w) for m, w in models.values())])
    worth, rows = np.array(VALUE), []
    for (name, (model, weights)), true in zip(models.items(), truth, strict=True):
        result = platform.estimate(model, log, 5, weights=weights)
        estimated = {one.name: one.robust_lift.estimate for one in result.objectives}
        new, old = (
            np.array([getattr(one, part).estimate for one in result.objectives])
            for part in ("robust", "current")
        )
        exact = dict(zip(place.objectives, (100 * (true / today - 1)).tolist(), strict=True))
        estimated["value"] = 100 * float(new @ worth / (old @ worth) - 1)
        exact["value"] = 100 * float(true @ worth / (today @ worth) - 1)
        rows.append({"model": name, "estimated": estimated, "true": exact})
        print(
            name, {k: (round(v, 1), round(exact[k], 1)) for k, v in estimated.items()}, flush=True
        )
    columns = (*place.objectives, "value")
    correlation = {
        name: spearman_of([r["estimated"][name] for r in rows], [r["true"][name] for r in rows])
        for name in columns
    }
    return {"requests": requests, "pairs": rows, "spearman": correlation}


def spearman_of(a: list[float], b: list[float]) -> float:
    return float(spearman(np.array([a, b]).T)[0, 1])


def scorer(model: Method, weights: dict | None):
    return lambda log: model.score(log, weights=weights)


if __name__ == "__main__":
    given = options(__doc__, "part", world="elive", requests=6_000, runs=100, pair_requests=30_000)
    if given.part == "online":
        result = run_online(given.world, progress=lambda e: print(e, flush=True))
        for lift in result.analysis.lifts:
            print(lift)
        write(given.json, result.to_dict())
    else:
        place = world(given.world)
        stored = {"world": given.world, "requests": given.requests, "runs": given.runs}
        stored |= {"rank_correlation": pairs(place, given.pair_requests)}
        write(given.json, stored | {"coverage": coverage(place, given.requests, given.runs)})
