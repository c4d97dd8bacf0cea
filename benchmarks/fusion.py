"""How good every fusion is in worlds: regret, small data, upstream changes, skewed labels.

    python benchmarks/fusion.py regret --json benchmarks/results/regret.json
    python benchmarks/fusion.py regret --redraw 101,2026 --rows 300000 --seeds 1 \\
        --methods harmonrank,harmonrank-network,lightgbm,logistic \\
        --json benchmarks/results/unseen.json
    python benchmarks/fusion.py small --json benchmarks/results/small.json
    python benchmarks/fusion.py swap --rows 200000 --seeds 1 --json benchmarks/results/swap.json
    python benchmarks/fusion.py swap --methods harmonrank \\
        --json benchmarks/results/swap_million.json
    python benchmarks/fusion.py skew --json benchmarks/results/skew.json
    python benchmarks/fusion.py schedule --json benchmarks/results/schedule.json
    python benchmarks/fusion.py heads --rows 200000 --json benchmarks/results/heads.json
    python benchmarks/fusion.py published --json benchmarks/results/published.json

Results are exact AUC-sums by true probabilities. A run that was stopped goes on where it was; only
its missing results are made. Without `--worlds` each takes those of its stored results. `--rows`,
`--seeds`, `--worlds` and `--methods` make it smaller;
`--redraw` takes other worlds of the same kinds, on which nothing was chosen.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from harmonrank.data import Log, read_log
from harmonrank.fusion import METHODS, method_class
from harmonrank.metrics import auc, best_score
from harmonrank.support.errors import HarmonRankError
from harmonrank.worlds import WORLDS as DRAWN
from harmonrank.worlds.every import AnyWorld, world, world_names
from harmonrank.worlds.simulation import as_frame, world_schema

FREE = ("closed-form", "prevalence-weights")
SWAPPED = [
    "harmonrank",
    "harmonrank-network",
    "harmonrank-paper",
    "closed-form",
    "logistic",
    "lightgbm",
]
LATER = 40_000_000
# The world `requests` has a benchmark of its own, per_request.py.
EIGHT = [name for name in world_names() if name != "requests"]
STORED = {
    "small": ["elive", "qkvideo", "conflict"],
    "swap": ["elive", "qkvideo", "conflict"],
    "skew": ["elive", "conflict"],
}


def log_of(place: AnyWorld, rows: int, seed: int, start: int, *, truth: bool = False) -> Log:
    sample = place.sample(rows, seed=seed, start=start, with_truth=truth)
    return read_log(as_frame(place, sample), world_schema(place))


def exact(fused: np.ndarray, exam: Log) -> float:
    return float(auc(fused, exam.truth).sum())


def ceiling(exam: Log) -> float:
    return exact(best_score(exam.truth), exam)


class Results:
    """Rows of results by a key; written after each, so that a stopped run loses one at most."""

    def __init__(self, path: Path | None, command: str) -> None:
        self.path, self.command, self.rows = path, command, []
        if path is not None and path.exists():
            self.rows = json.loads(path.read_text())["results"]

    def has(self, **key: Any) -> bool:
        return any(all(row.get(k) == v for k, v in key.items()) for row in self.rows)

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        print(
            *(f"{k}={v:.5g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()),
            flush=True,
        )
        if self.path is not None:
            text = json.dumps({"command": self.command, "results": self.rows}, indent=1)
            self.path.write_text(text + "\n")


def fitted(name: str, train: Log, valid: Log, seed: int) -> tuple[Any, float]:
    started = perf_counter()
    method = method_class(name)().fit(train, train.schema, valid=valid, seed=seed)
    return method, perf_counter() - started


def regret(options: argparse.Namespace, results: Results) -> None:
    for redraw, (seed, name) in product(options.redraw or [None], cells(options)):
        cell: dict[str, Any] = {"world": name, "rows": options.rows, "seed": seed}
        if redraw is not None:
            cell["redraw"] = redraw
        todo = [m for m in options.methods if not results.has(**cell, method=m)]
        if not todo:
            continue
        train, valid, exam = logs(world(name, redraw=redraw), options.rows, seed)
        for method in todo:
            row = {**cell, "method": method}
            try:
                model, seconds = fitted(method, train, valid, seed)
                gap = ceiling(exam) - exact(model.score(exam), exam)
                row |= {"regret": gap, "fit_seconds": seconds}
                health = getattr(model, "health", None)
                results.add(row if health is None else {**row, "health": health.to_dict()})
            except HarmonRankError as error:
                results.add({**row, "error": str(error)})


def small(options: argparse.Namespace, results: Results) -> None:
    options.methods = (
        ["harmonrank", *FREE, "logistic"] if options.methods == list(METHODS) else options.methods
    )
    for rows in (20_000, 50_000, 200_000):
        for seed, name in cells(options):
            if results.has(world=name, rows=rows, seed=seed):
                continue
            train, valid, exam = logs(world(name), rows, seed, exam_rows=500_000)
            row: dict[str, Any] = {"world": name, "rows": rows, "seed": seed}
            for method in options.methods:
                row[method] = ceiling(exam) - exact(
                    fitted(method, train, valid, seed)[0].score(exam), exam
                )
            results.add(row)


CHANGES = (
    {"a": 1.5},
    {"b": -1.0},
    {"a": 1.5, "b": -1.0},
    {"a": 0.6, "b": 0.7},
    {"a": 1.3, "b": 0.5, "tau_scale": 1.1},
    {"tau_scale": 1.5},
    {"a": 1.5, "tau_scale": 0.6},
)


def swap(options: argparse.Namespace, results: Results) -> None:
    """What an upstream change costs each method, as fitted and recalibrated on unlabelled rows."""
    names = SWAPPED if options.methods == list(METHODS) else options.methods
    for seed, name in cells(options):
        # Networks that were trained cannot be swapped.
        if name not in DRAWN or results.has(world=name, rows=options.rows, seed=seed):
            continue
        place = world(name)
        train, valid, exam = logs(place, options.rows, seed)
        models = {m: fitted(m, train, valid, seed)[0] for m in names}
        before = {m: exact(model.score(exam), exam) for m, model in models.items()}
        for change in CHANGES:
            swapped = place.with_upstream(place.objectives[1:3], **change)
            after = log_of(swapped, options.rows // 2, seed, LATER + options.rows, truth=True)
            recent = replace(log_of(swapped, 200_000, seed, 2 * LATER), labels=None, truth=None)
            row = {"world": name, "seed": seed, "rows": options.rows, **change}
            for m, model in models.items():
                row[f"lost {m}"] = before[m] - exact(model.score(after), after)
                again = model.recalibrated(recent)
                row[f"lost {m} recalibrated"] = before[m] - exact(again.score(after), after)
            row["lost ceiling"] = ceiling(exam) - ceiling(after)
            row["replaced"] = list(models[names[0]].drift(recent).replaced)
            results.add(row)


def skew(options: argparse.Namespace, results: Results) -> None:
    names = ["harmonrank", "logistic", "harmonrank-paper"]
    for seed, name in cells(options):
        # These have no purchases.
        if name in ("qkvideo", "trained") or results.has(world=name, seed=seed, method=names[-1]):
            continue
        train, valid, exam = logs(world(name), options.rows, seed)
        for method in names:
            row: dict[str, Any] = {
                "world": name,
                "seed": seed,
                "rows": options.rows,
                "method": method,
            }
            whole = exact(fitted(method, train, valid, seed)[0].score(exam), exam)
            for odds in (10_000, 100_000):
                model = fitted(method, fewer(train, odds, seed), fewer(valid, odds, seed), seed)[0]
                row[f"drop 1:{odds}"] = (whole - exact(model.score(exam), exam)) / whole
            results.add({**row, "auc_sum": whole})


def add_network(
    results: Results, row: dict[str, Any], method: Any, train: Log, valid: Log, exam: Log
) -> None:
    """Fit a network, unless the results have it, and add its regret and health."""
    if not results.has(**row):
        model = method.fit(train, train.schema, valid=valid, seed=1)
        gap = ceiling(exam) - exact(model.score(exam), exam)
        results.add({**row, "regret": gap, "health": model.health.to_dict()})


def schedule(options: argparse.Namespace, results: Results) -> None:
    """What a rate that falls does to the paper's network, in redraws of two worlds."""
    for name in ("elive", "conflict"):
        train, valid, exam = logs(world(name, redraw=6), options.rows, 1)
        for kind, rate in (("constant", 0.03), ("constant", 0.01), ("cosine", 0.02)):
            row = {"world": name, "rows": options.rows, "schedule": kind, "rate": rate}
            method = method_class("harmonrank-paper")(schedule=kind, learning_rate=rate)
            add_network(results, row, method, train, valid, exam)


def heads(options: argparse.Namespace, results: Results) -> None:
    """What `harmonrank-network` has by the likelihood of its heads and by the rank loss."""
    tried: list[dict[str, Any]] = [{"loss": "likelihood"}]
    tried += [
        {"loss": "rank", "ridge": ridge, "slope_ridge": 3 * ridge, "learning_rate": rate}
        for rate in (0.01, 0.003)
        for ridge in (3.0, 30.0, 300.0, 3000.0)
    ]
    for name in ("elive", "conflict"):
        train, valid, exam = logs(world(name, redraw=6), options.rows, 1)
        for chosen in tried:
            row = {"world": name, "redraw": 6, "rows": options.rows, "seed": 1, **chosen}
            method = method_class("harmonrank-network")(**chosen)
            add_network(results, row, method, train, valid, exam)


def published(options: argparse.Namespace, results: Results) -> None:
    """What the paper's own recipe reaches, as `preset="paper"` has it."""
    for name in ("elive", "conflict"):
        row = {"world": name, "rows": options.rows, "seed": 1}
        method = method_class("harmonrank-paper")(preset="paper")
        add_network(results, row, method, *logs(world(name), options.rows, 1))


def fewer(log: Log, odds: int, seed: int) -> Log:
    """Drop rows with a purchase until they are one in `odds`."""
    positive = np.flatnonzero(log.known_labels()[:, 0])
    keep = max(1, round((log.rows - len(positive)) / odds))
    gone = np.random.default_rng([seed, odds]).permutation(positive)[keep:]
    return log.take(np.setdiff1d(np.arange(log.rows), gone))


def logs(
    place: AnyWorld, rows: int, seed: int, exam_rows: int | None = None
) -> tuple[Log, Log, Log]:
    exam = log_of(place, exam_rows or rows // 2, seed, LATER, truth=True)
    return log_of(place, rows, seed, 0), log_of(place, rows // 2, seed, rows), exam


def cells(options: argparse.Namespace) -> Iterator[tuple[int, str]]:
    for seed in range(1, options.seeds + 1):
        for name in options.worlds:
            yield seed, name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parts = {
        "regret": regret,
        "small": small,
        "swap": swap,
        "skew": skew,
        "schedule": schedule,
        "heads": heads,
        "published": published,
    }
    parser.add_argument("part", choices=parts)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--worlds", type=lambda t: t.split(","))
    parser.add_argument("--methods", type=lambda t: t.split(","), default=list(METHODS))
    parser.add_argument(
        "--redraw",
        type=lambda t: [int(part) for part in t.split(",")],
        help="for regret: the seeds of other worlds, by commas",
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.worlds = options.worlds or STORED.get(options.part, EIGHT)
    command = f"python benchmarks/fusion.py {options.part} --rows {options.rows}"
    if options.part not in ("schedule", "heads", "published"):
        command += f" --seeds {options.seeds}"
    if options.redraw is not None:
        command += f" --redraw {','.join(map(str, options.redraw))}"
    parts[options.part](options, Results(options.json, command))


if __name__ == "__main__":
    main()
