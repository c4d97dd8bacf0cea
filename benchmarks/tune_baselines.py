"""Tune every network in the same way, so that none loses for want of tuning.

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
better than these by more than .003.

    python benchmarks/tune_baselines.py --json benchmarks/results/tuning.json

Finished fits are kept in the file and not repeated.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from harmonrank.data import Log, read_log
from harmonrank.fusion import ceiling_of, method_class
from harmonrank.metrics import auc
from harmonrank.worlds.every import world, world_names
from harmonrank.worlds.simulation import as_frame, world_schema

START: dict[str, Any] = {
    "scale": "logit",
    "buckets": 8,
    "interpolate": True,
    "learning_rate": 0.01,
    "weight_decay": 0.0,
    "steps": 1_500,
    "patience_steps": 1_500,
    "batch_rows": 4_096,
}
RATES: list[dict[str, Any]] = [{"learning_rate": 0.03}, {"learning_rate": 0.003}]
TABLES: list[dict[str, Any]] = [
    {"buckets": 16},
    {"buckets": 5},
    {"scale": "quantile"},
    {"buckets": 30, "interpolate": False},
]
LENGTHS: list[dict[str, Any]] = [
    {"weight_decay": 0.1},
    {"steps": 4_500, "patience_steps": 4_500},
]
MOVES = RATES + TABLES + LENGTHS
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
# One head per objective has options of other names: as many moves of the same kinds.
HEADS = "harmonrank-network"
HEADS_START: dict[str, Any] = {
    "buckets": 16,
    "width": 8,
    "learning_rate": 0.01,
    "ridge": 100.0,
    "slope_ridge": 100.0,
    "epochs": 6,
}
OWN[HEADS] = [
    {"learning_rate": 0.03},
    {"learning_rate": 0.003},
    {"buckets": 32},
    {"buckets": 8},
    {"ridge": 30.0},
    {"ridge": 300.0},
    {"slope_ridge": 300.0},
    {"epochs": 12},
]


def logs(name: str, rows: int, seed: int) -> tuple[Log, Log]:
    """Return training rows, and half as many validation rows, of a redrawn world."""
    drawn = world(name, redraw=seed)
    schema, half = world_schema(drawn), rows // 2
    train = drawn.sample(rows, seed=100 + seed, horizon=rows + half, with_truth=False)
    valid = drawn.sample(half, seed=100 + seed, start=rows, horizon=rows + half)
    return read_log(as_frame(drawn, train), schema), read_log(as_frame(drawn, valid), schema)


def measure(method: str, options: dict[str, Any], train: Log, valid: Log) -> dict[str, Any]:
    """Fit once and return what was reached on the validation rows."""
    started = time.process_time()
    model: Any = method_class(method)(**options)
    model.fit(train, train.schema, valid=valid, seed=1)
    ceiling = ceiling_of(valid, np.ones(len(train.schema.names)))
    assert ceiling is not None
    return {
        "regret": round(ceiling - float(auc(model.score(valid), valid.truth).sum()), 5),
        "epochs": len(model.history),
        "cpu_seconds": round(time.process_time() - started, 1),
        "dead": list(model.health.dead),
    }


class Tuning:
    """All fits so far, by method, options, world and seed, in a file that every fit adds to."""

    def __init__(self, path: Path, rows: int, worlds: list[str], seeds: int) -> None:
        self.path, self.rows, self.worlds, self.seeds = path, rows, worlds, seeds
        self._logs: dict[tuple[str, int], tuple[Log, Log]] = {}
        self.parts: dict[str, Any] = {"rows": rows, "start": START, "moves": MOVES}
        if path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            if any(stored.get(key) != value for key, value in self.parts.items()):
                raise SystemExit(f"'{path}' was made with other settings; choose another file.")
            self.parts = stored
        self.parts.setdefault("fits", {})
        self.parts.setdefault("best", {})

    def regrets(self, method: str, options: dict[str, Any], seeds: int) -> dict[str, float]:
        """Return the regret in each world, the mean over seeds; fits what is missing."""
        key = json.dumps(options, sort_keys=True)
        fits = self.parts["fits"].setdefault(method, {}).setdefault(key, {})
        for name in self.worlds:
            for seed in range(1, seeds + 1):
                if str(seed) in fits.setdefault(name, {}):
                    continue
                fits[name][str(seed)] = measure(method, options, *self._data(name, seed))
                print(method, key, name, fits[name][str(seed)], flush=True)
                self.save()
        return {
            name: float(np.mean([fits[name][str(s + 1)]["regret"] for s in range(seeds)]))
            for name in self.worlds
        }

    def _data(self, name: str, seed: int) -> tuple[Log, Log]:
        if (name, seed) not in self._logs:
            self._logs[name, seed] = logs(name, self.rows, seed)
        return self._logs[name, seed]

    def tune(self, method: str) -> None:
        """Offer all moves to a method, and store what is left in the end."""
        here = dict(HEADS_START if method == HEADS else START)
        tried = {json.dumps(here): self.regrets(method, here, self.seeds)}
        for move in _moves(method):
            there = {**here, **move}
            if _mean(self.regrets(method, there, 1)) > _mean(self.regrets(method, here, 1)) + NOISE:
                continue
            tried[json.dumps(there)] = self.regrets(method, there, self.seeds)
            if _mean(tried[json.dumps(there)]) < _mean(tried[json.dumps(here)]):
                here = there
        best = tried[json.dumps(here)]
        least = {name: min(found[name] for found in tried.values()) for name in self.worlds}
        self.parts["best"][method] = {
            "options": here,
            "regret": best,
            "least": least,
            "default": (default := self.regrets(method, {}, self.seeds)),
            "default_behind": [name for name in self.worlds if default[name] > least[name] + NOISE],
            "behind": [name for name in self.worlds if best[name] > least[name] + NOISE],
        }
        self.save()
        print(method, "best:", self.parts["best"][method], flush=True)

    def save(self) -> None:
        """Write the file whole, so that a kill leaves the old one."""
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.parts, indent=1) + "\n", encoding="utf-8")
        partial.replace(self.path)


def _moves(method: str) -> list[dict[str, Any]]:
    common = [] if method == HEADS else MOVES
    return common + OWN[method]


def _mean(regrets: dict[str, float]) -> float:
    return float(np.mean(list(regrets.values())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--worlds", default=",".join(w for w in world_names() if w != "requests"))
    parser.add_argument("--methods", default=",".join(OWN))
    given = parser.parse_args()
    tuning = Tuning(given.json, given.rows, given.worlds.split(","), given.seeds)
    for method in given.methods.split(","):
        tuning.tune(method)


if __name__ == "__main__":
    main()
