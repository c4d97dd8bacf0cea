"""Training and scoring by the fused kernels, against PyTorch eager on the same network.

Ours and the peers run interleaved on the same rows; medians are reported. `torch-eager` has all
threads, `torch-eager-1` one, which is faster on a machine that is busy. `torch-eager-torchsort`
takes torchsort's soft rank in the loss; it is left out where torchsort is not installed.

    python benchmarks/fused.py --json benchmarks/results/fused.json
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

from harmonrank.losses import bce_loss, rank_auc_loss
from harmonrank.model import Network, NetworkConfig
from harmonrank.model.fused import Scorer
from harmonrank.training import Arrays, LossValue, TrainingConfig
from harmonrank.training.learner import FusedLearner, Learner, TorchLearner

try:
    import torchsort
except ImportError:
    torchsort = None

OBJECTIVES, SLOTS = 5, (25, 11, 9, 4)
CORES = os.cpu_count() or 1


def rows_of(n: int) -> Arrays:
    rng = np.random.default_rng(0)
    scores = rng.beta(0.5, 3, (n, OBJECTIVES)).astype(np.float32)
    context = np.stack([rng.integers(0, k, n) for k in SLOTS], axis=1).astype(np.int32)
    labels = (rng.random((n, OBJECTIVES)) < scores * 0.3).astype(np.uint8)
    return Arrays(*(torch.from_numpy(array) for array in (scores, context, labels)))


def rank_loss(fused: torch.Tensor, batch: Arrays) -> LossValue:
    return LossValue(rank_auc_loss(fused, batch.labels))


def rank_loss_by_torchsort(fused: torch.Tensor, batch: Arrays) -> LossValue:
    n, labels = len(fused), batch.labels
    strength = n / fused.detach().std()
    ranks = torchsort.soft_rank(fused[None], regularization_strength=float(1 / strength))[0]
    positives = labels.sum(dim=0)
    auc = (ranks @ labels - positives * (positives + 1) / 2) / (positives * (n - positives))
    return LossValue((1 - auc).sum())


def cross_entropy(fused: torch.Tensor, batch: Arrays) -> LossValue:
    return LossValue(bce_loss(fused, batch.labels))


def interleaved(work: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each piece of work, all run in turn, after one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for round_ in range(rounds + 1):
        for name, run in work.items():
            torch.set_num_threads(1 if name.endswith("-1") else CORES)
            start = time.perf_counter()
            run()
            if round_:
                seconds[name].append(time.perf_counter() - start)
    torch.set_num_threads(CORES)
    return {name: statistics.median(times) for name, times in seconds.items()}


def result(name: str, rows: int, work: dict[str, Callable[[], object]], rounds: int) -> dict:
    medians = interleaved(work, rounds)
    ours = medians.pop("ours")
    print(f"{name:34} {rows:>9} rows {1e3 * ours:9.2f} ms {rows / ours / 1e6:6.2f}M rows/s", end="")
    print("".join(f"  {peer} {s / ours:.1f}x" for peer, s in medians.items()), flush=True)
    return {"name": name, "rows": rows, "ours_seconds": ours, "peers": medians}


def stepper(learner: Learner, loss: Callable, rows: int, batch: int) -> Callable[[], object]:
    """Return a call that takes the next step of an endless run over shuffled rows."""
    order = np.random.default_rng(1).permutation(rows)
    starts = iter(range(10**9))

    def step() -> object:
        start = next(starts) * batch % (rows - batch)
        return learner.step(np.sort(order[start : start + batch]), loss)

    return step


def train(rows: Arrays, batch: int, rounds: int, width: int) -> list[dict]:
    config, n = NetworkConfig(OBJECTIVES, SLOTS, width=width), len(rows)
    build = TrainingConfig().build

    def step(kind: type, loss: Callable) -> Callable[[], object]:
        network = Network(config, torch.Generator().manual_seed(0))
        return stepper(kind(network, rows, build), loss, n, batch)

    def eager(loss: Callable) -> dict[str, Callable[[], object]]:
        return {f"torch-eager{end}": step(TorchLearner, loss) for end in ("", "-1")}

    rank = {"ours": step(FusedLearner, rank_loss), **eager(rank_loss)}
    if torchsort is not None:
        rank["torch-eager-torchsort"] = step(TorchLearner, rank_loss_by_torchsort)
    rank["ours-bce"] = step(FusedLearner, cross_entropy)
    bce = {"ours": step(FusedLearner, cross_entropy), **eager(cross_entropy)}
    return [
        result(f"train, rank loss, width {width}", batch, rank, rounds),
        result(f"train, cross-entropy, width {width}", batch, bce, rounds),
    ]


def score(rows: Arrays, rounds: int, width: int) -> list[dict]:
    network = Network(NetworkConfig(OBJECTIVES, SLOTS, width=width)).eval()
    scorer, results = Scorer(network), []
    for n in (1000, 10_240, len(rows)):
        scores, context = rows.scores[:n], rows.context[:n]

        @torch.no_grad()
        def eager(scores: torch.Tensor = scores, context: torch.Tensor = context) -> None:
            for start in range(0, len(scores), 65_536):
                network(scores[start : start + 65_536], context[start : start + 65_536])

        arrays = scores.numpy(), context.numpy()
        work = {"ours": lambda a=arrays: scorer(*a), "torch-eager": eager, "torch-eager-1": eager}
        name = f"score, width {width}"
        results.append(result(name, n, work, rounds if n > 10_240 else 10 * rounds))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=10_240)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = rows_of(options.rows)
    results = []
    for width in (2, 8):
        results += train(rows, options.batch, options.rounds, width)
        results += score(rows, max(options.rounds // 5, 1), width)
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": CORES,
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(
            json.dumps({"machine": machine, "results": results}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
