"""Tune every network in the same way, so that none loses for want of tuning.

    python benchmarks/tune_baselines.py --json benchmarks/results/tuning.json

All start from the same options and are offered moves, one after the other: other rates, which
depend on the scale of a loss, scales and numbers of buckets, with and without interpolation, decay
and length, and options of its own for a loss that has some. A move is tried on the first redraw of
each world, and again on the second if it is not clearly worse; it is kept if the mean regret over
worlds and redraws falls.

Worlds are redrawn: cousins of the presets with other numbers, so that nothing is chosen on the
presets themselves. What counts is the exact regret on validation rows. No test row exists here.
Batches are smaller than the defaults' and trainings shorter, so that a search takes minutes.
`best` in the file is what a finished search has found, and `behind` names the worlds in which other
options were better by more than .003. `default` is the regret of the method's own defaults, with
larger batches, and `default_behind` names the worlds in which some options of the search were
better than these by more than .003. Finished fits are kept in the file and not repeated.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from store import EIGHT, ceiling, clocked, exact, options, write

from harmonrank.data import Log
from harmonrank.fusion import method_class
from harmonrank.worlds import world
from harmonrank_lab.worlds import log_of

START: dict[str, Any] = {
    "scale": "logit", "buckets": 8, "interpolate": True, "learning_rate": 0.01, "weight_decay": 0.0,
    "steps": 1_500, "patience_steps": 1_500, "batch_rows": 4_096,
}  # fmt: skip
MOVES: list[dict[str, Any]] = [
    {"learning_rate": 0.03},
    {"learning_rate": 0.003},
    {"buckets": 16},
    {"buckets": 5},
    {"scale": "quantile"},
    {"buckets": 30, "interpolate": False},
    {"weight_decay": 0.1},
    {"steps": 4_500, "patience_steps": 4_500},
]
OWN: dict[str, list[dict[str, Any]]] = {
    "harmonrank-paper": [{"strength": 0.3}, {"strength": 3.0}],
    "mbce": [],
    "label-aggregation": [],
    "label-aggregation-optimal": [],
    "pairwise-square": [],
    "pairwise-logistic": [],
    "aucm": [{"inner_rate": 0.1}, {"inner_rate": 0.02}],
    "reinforce": [{"batch_rows": 512, "steps": 12_000, "patience_steps": 12_000}],
}
NOISE = 0.003


@cache
def logs(name: str, rows: int, seed: int) -> tuple[Log, Log]:
    """Return training rows, and half as many validation rows, of a redrawn world."""
    drawn = world(name, redraw=seed)
    return log_of(drawn, rows, 100 + seed), log_of(drawn, rows // 2, 100 + seed, rows, truth=True)


def measure(method: str, chosen: dict[str, Any], train: Log, valid: Log) -> dict[str, Any]:
    """Fit once and return what was reached on the validation rows."""
    kind = method_class(method)
    fit = lambda: kind(**chosen).fit(train, train.schema, valid=valid, seed=1)  # noqa: E731
    model, _, cpu = clocked(fit)
    return {
        "regret": round(ceiling(valid) - exact(model.score(valid), valid), 5),
        "epochs": len(model.history),
        "cpu_seconds": round(cpu, 1),
        "dead": list(model.health.dead),
    }


class Tuning:
    """All fits so far, by method, options, world and seed, in a file that every fit adds to."""

    def __init__(self, path: Path, rows: int, worlds: list[str], seeds: int) -> None:
        self.path, self.rows, self.worlds, self.seeds = path, rows, worlds, seeds
        self.parts: dict[str, Any] = {"rows": rows, "start": START, "moves": MOVES}
        if path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            if any(stored.get(key) != value for key, value in self.parts.items()):
                raise SystemExit(f"'{path}' was made with other settings; choose another file.")
            self.parts = stored
        self.parts.setdefault("fits", {})
        self.parts.setdefault("best", {})

    def regrets(self, method: str, chosen: dict[str, Any], seeds: int) -> dict[str, float]:
        """Return the regret in each world, the mean over seeds; fits what is missing."""
        key = json.dumps(chosen, sort_keys=True)
        fits = self.parts["fits"].setdefault(method, {}).setdefault(key, {})
        for name in self.worlds:
            for seed in range(1, seeds + 1):
                if str(seed) not in fits.setdefault(name, {}):
                    rows = logs(name, self.rows, seed)
                    fits[name][str(seed)] = measure(method, chosen, *rows)
                    print(method, key, name, fits[name][str(seed)], flush=True)
                    write(self.path, self.parts)
        return {
            name: float(np.mean([fits[name][str(s + 1)]["regret"] for s in range(seeds)]))
            for name in self.worlds
        }

    def tune(self, method: str) -> None:
        """Offer all moves to a method, and store what is left in the end."""
        here = dict(START)
        tried = {json.dumps(here): self.regrets(method, here, self.seeds)}
        for move in MOVES + OWN[method]:
            there = {**here, **move}
            if mean(self.regrets(method, there, 1)) > mean(self.regrets(method, here, 1)) + NOISE:
                continue
            tried[json.dumps(there)] = self.regrets(method, there, self.seeds)
            if mean(tried[json.dumps(there)]) < mean(tried[json.dumps(here)]):
                here = there
        best, default = tried[json.dumps(here)], self.regrets(method, {}, self.seeds)
        least = {name: min(regrets[name] for regrets in tried.values()) for name in self.worlds}
        self.parts["best"][method] = {
            "options": here,
            "regret": best,
            "least": least,
            "default": default,
            "default_behind": [n for n in self.worlds if default[n] > least[n] + NOISE],
            "behind": [n for n in self.worlds if best[n] > least[n] + NOISE],
        }
        write(self.path, self.parts)
        print(method, "best:", self.parts["best"][method], flush=True)


def mean(regrets: dict[str, float]) -> float:
    return float(np.mean(list(regrets.values())))


if __name__ == "__main__":
    given = options(__doc__, rows=100_000, seeds=2, worlds=EIGHT, methods=list(OWN))
    tuning = Tuning(given.json, given.rows, given.worlds, given.seeds)
    for method in given.methods:
        tuning.tune(method)
