"""AUC of five objectives in one sort, against a loop over scikit-learn's `roc_auc_score`.

Ours and the peer run interleaved on the same arrays; medians are reported. A peer that is not
installed is left out.

    python benchmarks/auc.py --json benchmarks/results/auc.json
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from harmonrank.metrics import (
    auc,
    auc_sum_interval,
    bootstrap_auc_sum,
    bootstrap_difference,
    grouped_auc,
)

try:
    from sklearn.metrics import roc_auc_score
except ImportError:
    roc_auc_score = None

PREVALENCES = [0.001, 0.02, 0.01, 0.03, 0.25]


def interleaved(work: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each piece of work, all run in turn, after one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for round_ in range(rounds + 1):
        for name, run in work.items():
            start = time.perf_counter()
            run()
            if round_:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def result(name: str, rows: int, work: dict[str, Callable[[], object]], rounds: int) -> dict:
    medians = interleaved(work, rounds)
    ours = medians.pop("ours")
    print(f"{name:32} {rows:>9} rows  {1e3 * ours:9.1f} ms", end="")
    print("".join(f"  {peer} {1e3 * s:.1f} ms ({s / ours:.1f}x)" for peer, s in medians.items()))
    return {"name": name, "rows": rows, "ours_seconds": ours, "peers": medians}


def sklearn_loop(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.array([roc_auc_score(column, scores) for column in labels.T])


def measure(rows: int, rounds: int) -> list[dict]:
    rng = np.random.default_rng(0)
    labels = (rng.random((rows, 5)) < PREVALENCES).astype(np.uint8)
    logits = rng.normal(size=rows) + labels.sum(axis=1)
    requests = rng.integers(0, max(rows // 20, 1), rows)
    results = []
    shapes = {"logits": logits, "probabilities": 1 / (1 + np.exp(3 - 2 * logits))}
    shapes |= {"three digits": np.round(shapes["probabilities"], 3)}
    for shape, scores in shapes.items():
        work: dict[str, Callable[[], object]] = {"ours": lambda s=scores: auc(s, labels)}
        if roc_auc_score is not None:
            np.testing.assert_allclose(
                auc(scores, labels), sklearn_loop(scores, labels), rtol=1e-10
            )
            work["sklearn"] = lambda s=scores: sklearn_loop(s, labels)
        results.append(result(f"auc, {shape}", rows, work, rounds))
    other = logits + rng.normal(size=rows)
    alone = {
        "grouped auc": lambda: grouped_auc(logits, labels, requests),
        "auc sum interval": lambda: auc_sum_interval(logits, labels, groups=requests),
        "bootstrap of 200": lambda: bootstrap_auc_sum(logits, labels),
        "paired bootstrap of 200": lambda: bootstrap_difference(logits, other, labels),
    }
    for name, run in alone.items():
        results.append(result(name, rows, {"ours": run}, 1 if "bootstrap" in name else rounds))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    results = measure(options.rows, options.rounds)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(
            json.dumps({"machine": machine, "results": results}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
