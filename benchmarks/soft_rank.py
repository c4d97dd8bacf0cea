"""Soft ranks, forward and backward, against torchsort: how fast, and how far from exact.

Ours and the peer run interleaved on the same scores in one process; medians are reported. A peer
that is not installed is left out.

    python benchmarks/soft_rank.py --json benchmarks/results/soft_rank.json
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
import torch

from harmonrank.ranking import argsort, soft_rank

try:
    import torchsort
except ImportError:
    torchsort = None

# Enough that a short burst of other work on the machine does not move a median.
ROUNDS = {10_240: 1000, 1_024_000: 25}


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
    print(f"{name:32} {rows:>9} rows  {1e3 * ours:9.3f} ms", end="")
    print("".join(f"  {peer} {1e3 * s:.3f} ms ({s / ours:.2f}x)" for peer, s in medians.items()))
    return {"name": name, "rows": rows, "ours_seconds": ours, "peers": medians}


def both_ways(operator: Callable, scores: torch.Tensor, upstream: torch.Tensor) -> Callable:
    scores = scores.clone().requires_grad_()

    def run() -> None:
        scores.grad = None
        operator(scores).backward(upstream)

    return run


def speed(rows: int, dtype: torch.dtype, strength: float, rounds: int) -> dict:
    scores, upstream = torch.randn(2, rows, dtype=dtype)
    work = {"ours": both_ways(lambda s: soft_rank(s, strength=strength), scores, upstream)}
    if torchsort:
        # The same projection: the scores have unit spread.
        epsilon = strength / rows
        work["torchsort"] = both_ways(
            lambda s: torchsort.soft_rank(s, regularization_strength=epsilon),
            scores[None],
            upstream[None],
        )
    name = f"soft_rank {str(dtype).removeprefix('torch.')} strength {strength:g}"
    return result(name, rows, work, rounds)


def exact(scores: np.ndarray, strength: float) -> np.ndarray:
    """Pool adjacent violators in extended precision, by plain scores and plain strength."""
    order = np.argsort(scores, kind="stable")
    z = scores[order].astype(np.longdouble) / np.longdouble(strength)
    y = z - np.arange(1, len(z) + 1)
    means: list[np.longdouble] = []
    sizes: list[int] = []
    for value in y:
        mean, size = value, 1
        while means and means[-1] >= mean:
            before, count = means.pop(), sizes.pop()
            mean, size = (mean * size + before * count) / (size + count), size + count
        means.append(mean)
        sizes.append(size)
    ranks = np.empty(len(z), np.longdouble)
    ranks[order] = z - np.repeat(np.array(means), sizes)
    return ranks


def accuracy(rows: int, dtype: torch.dtype, strength: float) -> dict:
    """Largest error in ranks, with the plain strength that both sides understand."""
    scores = torch.randn(rows, dtype=dtype)
    truth = exact(scores.numpy(), strength / rows)

    def error(ranks: torch.Tensor) -> float:
        return float(np.abs(ranks.numpy() - truth).max())

    options = {"strength": strength / rows, "scale": "none"}
    found = {
        "name": f"error {str(dtype).removeprefix('torch.')} strength {strength:g}",
        "rows": rows,
        "ours_ranks": error(soft_rank(scores, **options)),
        "rounding_ranks": error(torch.from_numpy(truth.astype(scores.numpy().dtype))),
        "peers": {},
    }
    if torchsort:
        peer = torchsort.soft_rank(scores[None], regularization_strength=strength / rows)[0]
        found["peers"]["torchsort"] = error(peer)
    print(found)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="where to store the results")
    parser.add_argument("--rows", type=int, nargs="*", default=list(ROUNDS))
    arguments = parser.parse_args()
    torch.manual_seed(0)
    results = []
    for rows in arguments.rows:
        rounds = ROUNDS.get(rows, 20)
        for dtype in (torch.float32, torch.float64):
            results += [speed(rows, dtype, strength, rounds) for strength in (1.0, 3.0, 10.0)]
            values = torch.randn(rows, dtype=dtype).numpy()
            work = {
                "ours": lambda values=values: argsort(values),
                "numpy-stable": lambda values=values: np.argsort(values, kind="stable"),
                "numpy-unstable": lambda values=values: np.argsort(values),
            }
            results.append(result(f"argsort {values.dtype}", rows, work, rounds))
    errors = [
        accuracy(max(arguments.rows), dtype, strength)
        for dtype in (torch.float32, torch.float64)
        for strength in (1.0, 10.0)
    ]
    machine = {
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "torch": torch.__version__,
    }
    if arguments.json:
        report = {"machine": machine, "results": results, "errors": errors}
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
