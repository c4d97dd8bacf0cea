"""How good every fusion is in worlds: regret, small data, upstream changes, drift, skewed labels.

    python benchmarks/fusion.py regret --json benchmarks/results/regret.json
    python benchmarks/fusion.py regret --redraw 101 2026 --rows 300000 --seeds 1 \\
        --methods harmonrank lightgbm logistic --json benchmarks/results/unseen.json
    python benchmarks/fusion.py small --json benchmarks/results/small.json
    python benchmarks/fusion.py swap --rows 200000 --seeds 1 --json benchmarks/results/swap.json
    python benchmarks/fusion.py swap --methods harmonrank \\
        --json benchmarks/results/swap_million.json
    python benchmarks/fusion.py drifting --rows 200000 --seeds 2 \\
        --json benchmarks/results/drifting.json
    python benchmarks/fusion.py skew --json benchmarks/results/skew.json
    python benchmarks/fusion.py schedule --json benchmarks/results/schedule.json
    python benchmarks/fusion.py published --json benchmarks/results/published.json

Results are exact AUC-sums by true probabilities, over all rows, and of regret within requests too
(`regret_within`). A run that was stopped goes on where it was; only
its missing results are made. With `--again` those that another commit made are replaced.
Without `--worlds` and `--methods` each part takes those of its stored result; `harmonrank, all` is
the default fitted for all rows. `--redraw` takes other worlds of the same kinds, on which nothing
was chosen.
"""

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from store import EIGHT, LIFELIKE, Rows, ceiling, clocked, exact, options

from harmonrank.data import Log
from harmonrank.fusion import METHODS, Method, method_class
from harmonrank.support import HarmonRankError
from harmonrank.worlds import Additive, world
from harmonrank_lab.worlds import LATER, RequestAreas, World, log_of, logs_of, sample_to_test
from harmonrank_lab.worlds.lifelike import with_drift

SWAPPED = ["harmonrank", "harmonrank-paper", "closed-form", "logistic", "lightgbm"]
OF_PART: dict[str, tuple[list[str], list[str]]] = {
    "regret": ([*EIGHT, *LIFELIKE], ["harmonrank", "harmonrank, all", *METHODS[1:]]),
    "small": (EIGHT[:3], ["harmonrank", "closed-form", "prevalence-weights", "logistic"]),
    "swap": (EIGHT[:3], SWAPPED),
    "drifting": (EIGHT[:3], ["harmonrank", "closed-form", "logistic"]),
    "skew": (["elive", "conflict"], ["harmonrank", "logistic", "harmonrank-paper"]),
    "schedule": (["elive", "conflict"], []),
    "published": (["elive", "conflict"], []),
}
CHANGES = (
    {"a": 1.5},
    {"b": -1.0},
    {"a": 1.5, "b": -1.0},
    {"a": 0.6, "b": 0.7},
    {"a": 1.3, "b": 0.5, "tau_scale": 1.1},
    {"tau_scale": 1.5},
    {"a": 1.5, "tau_scale": 0.6},
)

MOVES = (
    {"alike": 0.4},
    {"by_context": 0.15},
    {"by_context": 0.3},
    {"alike": 0.2, "by_context": 0.3},
    {"slow": True},
)
_RECENT, _OTHER, _DRIFT = 200_000, 1000, 0xD21F7


def fitted(label: str, train: Log, valid: Log, seed: int) -> Method:
    """Fit a method; after a comma stands which AUC it is to optimise."""
    name, _, optimised = label.partition(", ")
    options = {"optimise": optimised} if optimised else {}
    return method_class(name)(**options).fit(train, train.schema, valid=valid, seed=seed)


def cells(given: Namespace) -> Iterator[dict[str, Any]]:
    for seed, name in product(range(1, given.seeds + 1), given.worlds):
        yield {"world": name, "rows": given.rows, "seed": seed}


def regret(given: Namespace, results: Rows) -> None:
    for redraw, cell in product(given.redraw, cells(given)):
        asked = cell | {"redraw": redraw or None}
        cell |= {"redraw": redraw} if redraw else {}
        todo = [m for m in given.methods if not results.has(**asked, method=m)]
        if not todo:
            continue
        place = world(cell["world"], redraw=redraw or None)
        train, valid, test = logs_of(place, given.rows, cell["seed"])
        tested = partial(sample_to_test, rows=given.rows, seed=cell["seed"])
        within = RequestAreas.of(place, tested)
        for method in todo:
            row = {**cell, "method": method}
            try:
                fit = partial(fitted, method, train, valid, cell["seed"])
                model, seconds, _ = clocked(fit)
                score = model.score(test)
                row |= {
                    "regret": ceiling(test) - exact(score, test),
                    "regret_within": within.regret(score),
                    "fit_seconds": seconds,
                }
                health = getattr(model, "health", None)
                results.add(row if health is None else {**row, "health": health.to_dict()})
            except HarmonRankError as error:
                results.add({**row, "error": str(error)})


def small(given: Namespace, results: Rows) -> None:
    for rows, cell in product((20_000, 50_000, 200_000), cells(given)):
        cell |= {"rows": rows}
        if not results.has(**cell):
            train, valid, test = logs_of(world(cell["world"]), rows, cell["seed"], 500_000)
            models = {m: fitted(m, train, valid, cell["seed"]) for m in given.methods}
            best = ceiling(test)
            results.add(
                cell | {m: best - exact(model.score(test), test) for m, model in models.items()}
            )


def swap(given: Namespace, results: Rows) -> None:
    """What an upstream change costs each method, as fitted and recalibrated on unlabelled rows."""
    for cell in cells(given):
        if results.has(**cell):
            continue
        place, seed = world(cell["world"]), cell["seed"]
        train, valid, test = logs_of(place, given.rows, seed)
        models = {m: fitted(m, train, valid, seed) for m in given.methods}
        before = {m: exact(model.score(test), test) for m, model in models.items()}
        for change in CHANGES:
            swapped = place.with_upstream(place.objectives[1:3], **change)
            after = log_of(swapped, given.rows // 2, seed, LATER + given.rows, truth=True)
            recent = replace(log_of(swapped, 200_000, seed, 2 * LATER), labels=None, truth=None)
            row = {**cell, **change}
            for m, model in models.items():
                row[f"lost {m}"] = before[m] - exact(model.score(after), after)
                again = model.recalibrated(recent)
                row[f"lost {m} recalibrated"] = before[m] - exact(again.score(after), after)
            row["lost ceiling"] = ceiling(test) - ceiling(after)
            row["replaced"] = list(models[given.methods[0]].drift(recent).replaced)
            results.add(row)


def drifting(given: Namespace, results: Rows) -> None:
    """What recalibrating costs where chances moved, as upstream models rightly say."""
    for cell in cells(given):
        others = dict.fromkeys(kind for moves in MOVES for kind in moves)
        todo = [moves for moves in MOVES if not results.has(**cell, **(others | moves))]
        if not todo:
            continue
        place, seed = world(cell["world"]), cell["seed"]
        train, valid, _ = logs_of(place, given.rows, seed)
        models = {m: fitted(m, train, valid, seed) for m in given.methods}
        for moves in todo:
            moved, recent = slowly(place, seed) if "slow" in moves else at_once(place, seed, moves)
            after = log_of(moved, given.rows // 2, seed, LATER + given.rows, truth=True)
            blind, best, row = replace(recent, labels=None), ceiling(after), {**cell, **moves}
            for m, model in models.items():
                again = {"as fitted": model, "recalibrated": model.recalibrated(blind)}
                again["with labels"] = model.recalibrated(recent)
                again["all scores"] = model.recalibrated(blind, scores="all")
                regrets = {
                    kind: best - exact(one.score(after), after) for kind, one in again.items()
                }
                row |= {f"{m} {kind}": regret for kind, regret in regrets.items()}
            results.add(row)


def at_once(place: Any, seed: int, moves: dict[str, float]) -> tuple[Any, Log]:
    """Return the world after some moves, and its recent rows."""
    moved = with_chances(place, seed, **moves)
    return moved, log_of(moved, _RECENT, seed, 2 * LATER)


def slowly(place: Any, seed: int) -> tuple[Any, Log]:
    """Return the world with a drift as that of `drifting`, and rows of the time's second half.

    Other than there, upstream models follow it.
    """
    moved = with_drift(World.of(place), np.random.default_rng([seed, _DRIFT]))
    moved = replace(moved, drift=replace(moved.drift, followed=True))
    return moved, log_of(moved, _RECENT, seed + _OTHER, _RECENT, horizon=2 * _RECENT)


def with_chances(place: Any, seed: int, alike: float = 0.0, by_context: float = 0.0) -> Any:
    """Return the world with other mean logits: by some of one context, and all up or down."""
    rng = np.random.default_rng([seed, _DRIFT])
    effects = place.mu.effects.items()
    moved = {name: effect + by_context * rng.normal(size=effect.shape) for name, effect in effects}
    base = place.mu.base + alike * rng.choice([-1.0, 1.0], len(place.mu.base))
    return replace(place, mu=Additive(base, moved))


def skew(given: Namespace, results: Rows) -> None:
    for cell in cells(given):
        train, valid, test = logs_of(world(cell["world"]), given.rows, cell["seed"])
        for method in given.methods:
            row, seed = {**cell, "method": method}, cell["seed"]
            if results.has(**row):
                continue
            whole = exact(fitted(method, train, valid, seed).score(test), test)
            for odds in (10_000, 100_000):
                model = fitted(method, fewer(train, odds, seed), fewer(valid, odds, seed), seed)
                row[f"drop 1:{odds}"] = (whole - exact(model.score(test), test)) / whole
            results.add({**row, "auc_sum": whole})


def fewer(log: Log, odds: int, seed: int) -> Log:
    """Drop rows with a purchase until they are one in `odds`."""
    positive = np.flatnonzero(log.known_labels()[:, 0])
    keep = max(1, round((log.rows - len(positive)) / odds))
    gone = np.random.default_rng([seed, odds]).permutation(positive)[keep:]
    return log.take(np.setdiff1d(np.arange(log.rows), gone))


def network(results: Rows, row: dict[str, Any], method: Any, redraw: int | None = None) -> None:
    """Fit a network, unless the results have it, and add its regret and health."""
    if not results.has(**row):
        train, valid, test = logs_of(world(row["world"], redraw=redraw), row["rows"], 1)
        model = method.fit(train, train.schema, valid=valid, seed=1)
        gap = ceiling(test) - exact(model.score(test), test)
        results.add({**row, "regret": gap, "health": model.health.to_dict()})


def schedule(given: Namespace, results: Rows) -> None:
    """What a rate that falls does to the paper's network, in redraws of two worlds."""
    rates = (("constant", 0.03), ("constant", 0.01), ("cosine", 0.02))
    for name, (kind, rate) in product(given.worlds, rates):
        row = {"world": name, "rows": given.rows, "schedule": kind, "rate": rate}
        network(
            results, row, method_class("harmonrank-paper")(schedule=kind, learning_rate=rate), 6
        )


def published(given: Namespace, results: Rows) -> None:
    """What the paper's own recipe reaches, as `preset="paper"` has it."""
    for name in given.worlds:
        row = {"world": name, "rows": given.rows, "seed": 1}
        network(results, row, method_class("harmonrank-paper")(preset="paper"))


if __name__ == "__main__":
    parts = (regret, small, swap, drifting, skew, schedule, published)
    given = options(
        __doc__, "part", rows=1_000_000, seeds=3, worlds=[""], methods=[""], redraw=[0], again=False
    )
    worlds_of_part, methods_of_part = OF_PART[given.part]
    given.worlds = worlds_of_part if given.worlds == [""] else given.worlds
    given.methods = methods_of_part if given.methods == [""] else given.methods
    {part.__name__: part for part in parts}[given.part](given, Rows(given.json, again=given.again))
