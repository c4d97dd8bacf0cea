"""How fast worlds are drawn, what their ceilings are, and how far two simple fusions fall short.

Every preset and three redraws of each are sampled with their truth. Wall and processor seconds
are both reported: on a shared machine the first says little.

    python benchmarks/worlds.py --json benchmarks/results/worlds.json
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from harmonrank.metrics import auc, best_score
from harmonrank.worlds import Sample
from harmonrank.worlds.every import AnyWorld, world, world_names

try:
    from sklearn.isotonic import IsotonicRegression
except ImportError:
    IsotonicRegression = None

THREE = {"elive": ("buy", "follow", "long_view"), "qkvideo": ("click", "like", "follow")}


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    value = work()
    return value, time.perf_counter() - wall, time.process_time() - processor


def ceiling(sample: Sample) -> np.ndarray:
    return auc(best_score(sample.truth), sample.truth)


def one(name: str, redraw: int | None, rows: int) -> dict[str, Any]:
    drawn, build, _ = timed(lambda: world(name, redraw=redraw))
    sample, wall, processor = timed(lambda: drawn.sample(rows, seed=1))
    best = ceiling(sample)
    found = {
        "world": name,
        "redraw": redraw,
        "rows": rows,
        "build_seconds": build,
        "sample_seconds": wall,
        "sample_processor_seconds": processor,
        "prevalence": dict(zip(drawn.objectives, sample.labels.mean(0).tolist(), strict=True)),
        "auc": dict(zip(drawn.objectives, best.tolist(), strict=True)),
        "ceiling": float(best.sum()),
    }
    if name in THREE:
        three = drawn.subset(THREE[name]).sample(rows, seed=1)
        found["three"] = {"objectives": THREE[name], "ceiling": float(ceiling(three).sum())}
    return found


def design(sample: Sample) -> np.ndarray:
    """A one, the logits of all scores, and the context one-hot."""
    columns = [np.ones(len(sample.scores)), *(np.log(sample.scores) - np.log1p(-sample.scores)).T]
    columns += [c == k for c in sample.context.values() for k in np.unique(c)[1:]]
    return np.array(columns, dtype=np.float64).T


def logistic(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Newton's method, with a ridge too small to matter but for an empty category."""
    beta = np.zeros(X.shape[1])
    beta[0] = np.log(y.mean() / (1 - y.mean()))
    for _ in range(15):
        p = 1 / (1 + np.exp(-(X @ beta)))
        hessian = (X * (p * (1 - p))[:, None]).T @ X + 1e-3 * np.eye(len(beta))
        step = np.linalg.solve(hessian, X.T @ (y - p))
        beta += step
        if abs(step).max() < 1e-4:
            break
    return beta


def regrets(drawn: AnyWorld, rows: int) -> dict[str, float]:
    """Regret of calibrated own scores and of logistic regressions, both with optimal weights."""
    train, test = drawn.sample(rows, seed=11, with_truth=False), drawn.sample(rows // 2, seed=12)
    own, every = np.empty_like(test.scores), np.empty_like(test.scores)
    X, X_test = design(train), design(test)
    for m in range(len(drawn.objectives)):
        curve = IsotonicRegression(out_of_bounds="clip")
        curve.fit(train.scores[:, m], train.labels[:, m])
        own[:, m] = curve.predict(test.scores[:, m])
        every[:, m] = 1 / (1 + np.exp(-(X_test @ logistic(X, train.labels[:, m]))))
    best = ceiling(test).sum()
    weight = 1 / (train.labels.mean(0) * (1 - train.labels.mean(0)))
    return {
        name: float(best - auc(p @ weight, test.truth).sum())
        for name, p in (("calibrated-own-score", own), ("logistic-on-all", every))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    world("elive").sample(1000, seed=0)  # compiles
    results = []
    for name in world_names():
        for redraw in (None, 1, 2, 3):
            found = one(name, redraw, arguments.rows)
            if redraw is None and IsotonicRegression is not None:
                found["regret"] = regrets(world(name), arguments.rows // 2)
            results.append(found)
            three = f"{found['three']['ceiling']:.4f}" if "three" in found else "-"
            print(
                f"{name:9} redraw {redraw or '-'}  ceiling {found['ceiling']:.4f}  three {three:6}"
                f"  build {found['build_seconds']:.2f} s"
                f"  sample {found['sample_seconds']:.2f} s"
                f" ({found['sample_processor_seconds']:.2f} s of processor)"
                f"  {found.get('regret', '')}",
                flush=True,
            )
    if arguments.json:
        machine = {"cores": os.cpu_count(), "machine": platform.machine()}
        text = json.dumps({"machine": machine, "results": results}, indent=2)
        arguments.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
