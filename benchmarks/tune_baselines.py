"""Tune the neural baselines, so that none loses for want of tuning.

For every method, learning rate and weight decay climb their ladders, from 0.003 and 0.001 to the
better neighbour as long as there is one; then the options of its own are tried on top, and twice
the steps. (The policy gradient draws each batch many times and takes long; it chooses from the few
that are good for the others.) All on redrawn worlds: cousins of the presets with other numbers, so
that nothing is chosen on the presets themselves. What counts is the mean over the worlds of the
AUC-sum on validation rows, by true probabilities. No test row exists here.
The defaults in `harmonrank.methods` are the options that the file stores as best, or options within
.003 of them, which is the noise of a seed.

    python benchmarks/tune_baselines.py --json benchmarks/results/tuning.json

Finished fits are kept in the file and not repeated; `earlier` holds fits of at most 60 epochs, with
a patience of 6, of methods that have not been tuned again since.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from harmonrank.data import Log, read_log
from harmonrank.data.worlds import WORLDS, world
from harmonrank.evaluation.simulation import as_frame, world_schema
from harmonrank.events import EpochEnded
from harmonrank.methods import method_class
from harmonrank.metrics import auc

REDRAW, SEED = 1, 101
COMMON = {"steps": 6_000, "patience_steps": 600}
RATES, DECAYS = (0.001, 0.003, 0.01, 0.03, 0.1), (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
LONGER = {"steps": 12_000, "patience_steps": 1_200}
OWN: dict[str, list[dict[str, Any]]] = {
    "harmonrank-paper": [{"strength": s} for s in (0.3, 3.0, 8.0)],
    "mbce": [],
    "label-aggregation": [],
    "label-aggregation-optimal": [],
    "pairwise-square": [],
    "aucm": [{"inner_rate": 0.02}, {"inner_rate": 0.5}],
    "pairwise-logistic": [],
    "reinforce": [
        {"sigma": 0.25},
        {"sigma": 0.1},
        {"sigma": 0.25, "steps": 12_000},
        {"sigma": 0.25, "steps": 12_000, "patience_steps": 3_000},
        {"sigma": 0.1, "steps": 12_000, "patience_steps": 3_000},
        {"sigma": 0.25, "steps": 24_000, "patience_steps": 6_000},
        {"sigma": 0.1, "steps": 24_000, "patience_steps": 6_000},
    ],
}
SLOW = {"reinforce"}
FEW = ((0.003, 1e-2), (0.003, 1e-3), (0.01, 1e-3))


def logs(name: str, rows: int) -> tuple[Log, Log]:
    """Return training rows, and half as many validation rows, of a redrawn world."""
    drawn = world(name, redraw=REDRAW)
    schema, half = world_schema(drawn), rows // 2
    train = drawn.sample(rows, seed=SEED, horizon=rows + half, with_truth=False)
    valid = drawn.sample(half, seed=SEED, start=rows, horizon=rows + half)
    return read_log(as_frame(drawn, train), schema), read_log(as_frame(drawn, valid), schema)


def measure(method: str, options: dict[str, Any], train: Log, valid: Log) -> dict[str, Any]:
    """Fit once and return what was reached on the validation rows."""
    epochs: list[Any] = []

    def keep(event: Any) -> None:
        if isinstance(event, EpochEnded):
            epochs.append(event)

    started = time.perf_counter()
    model = method_class(method)(**{**COMMON, **options})
    model.fit(train, train.schema, valid=valid, seed=SEED, on_event=keep)
    return {
        "auc_sum": float(auc(model.score(valid), valid.truth).sum()),
        "best_epoch": epochs[-1].best_epoch + 1,
        "seconds": round(time.perf_counter() - started, 1),
    }


class Results:
    """All fits so far, by method, options and world."""

    def __init__(self, path: Path, rows: int) -> None:
        self.path, self.data = path, {name: logs(name, rows) for name in WORLDS}
        self.parts: dict[str, Any] = {"rows": rows, "redraw": REDRAW, "seed": SEED, **COMMON}
        self.parts |= {"fits": {}, "best": {}}
        if path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            if {k: stored.get(k) for k in self.parts} | {"fits": {}, "best": {}} != self.parts:
                raise SystemExit(f"'{path}' was made with other settings; choose another file.")
            self.parts = stored

    def fit(self, method: str, options: dict[str, Any], name: str, data: tuple[Log, Log]) -> None:
        key = json.dumps(options, sort_keys=True)
        fits = self.parts["fits"].setdefault(method, {}).setdefault(key, {})
        if name not in fits:
            fits[name] = measure(method, options, *data)
            print(method, key, name, fits[name], flush=True)
            self.save()

    def mean(self, method: str, options: dict[str, Any]) -> float:
        """Return the mean AUC-sum over the worlds; fits what is missing."""
        for name, pair in self.data.items():
            self.fit(method, options, name, pair)
        fits = self.parts["fits"][method][json.dumps(options, sort_keys=True)]
        return sum(result["auc_sum"] for result in fits.values()) / len(fits)

    def climb(self, method: str) -> dict[str, Any]:
        """Return the rate and decay from which no step up or down a ladder is better."""
        here, best = (RATES.index(0.003), DECAYS.index(1e-3)), float("-inf")
        while True:
            near = [
                (here[0] + i, here[1] + j) for i, j in ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))
            ]
            inside = [n for n in near if 0 <= n[0] < len(RATES) and 0 <= n[1] < len(DECAYS)]
            values = {n: self.mean(method, _options(*n)) for n in inside}
            there = max(values, key=lambda n: values[n])
            if values[there] <= best or there == here:
                return _options(*here)
            here, best = there, values[there]

    def choose(self, method: str) -> dict[str, Any]:
        """Return the best of a few rates and decays that are good for the other methods."""
        few = [_options(RATES.index(rate), DECAYS.index(decay)) for rate, decay in FEW]
        return max(few, key=lambda options: self.mean(method, options))

    def tune(self, method: str) -> None:
        first = self.choose(method) if method in SLOW else self.climb(method)
        tried = [first, *({**first, **own} for own in OWN[method])]
        options = max(tried, key=lambda o: self.mean(method, o))
        if method not in SLOW:
            options = max([options, {**options, **LONGER}], key=lambda o: self.mean(method, o))
        found = {"options": options, "auc_sum": self.mean(method, options)}
        self.parts["best"][method] = found
        self.save()
        print(method, "best:", found, flush=True)

    def save(self) -> None:
        self.path.write_text(json.dumps(self.parts, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--methods", default=",".join(OWN))
    arguments = parser.parse_args()
    results = Results(arguments.json, arguments.rows)
    for method in arguments.methods.split(","):
        results.tune(method)


def _options(rate: int, decay: int) -> dict[str, Any]:
    return {"learning_rate": RATES[rate], "weight_decay": DECAYS[decay]}


if __name__ == "__main__":
    main()
