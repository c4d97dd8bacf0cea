"""What measured times come to on a thousand machines, from network figures that are stated.

The step of a global batch is simulated from the kernels' times, measured here.
"""

import math
import time
from statistics import median

import numpy as np
import torch

from harmonrank.data.rows.blocks import starts_of
from harmonrank.data.rows.engine_blocks import SENDERS
from harmonrank.paper import Network, NetworkConfig
from harmonrank.paper.fused import Step
from harmonrank.paper.losses import Patterns, rank_auc_slope
from harmonrank.support.threads import limited_threads

BATCH = 10_240
LATENCY, BANDWIDTH = 50e-6, 25e9 / 8  # stated: of one message, and of a machine's network
CORES, CORE_HOUR = 16, 0.05  # stated: of a machine, and its price in dollars
DAY_ROWS, MACHINES = 10**10, 1000
STATED = {
    "latency": LATENCY,
    "bandwidth": BANDWIDTH,
    "cores": CORES,
    "core_hour": CORE_HOUR,
    "day_rows": DAY_ROWS,
    "machines": MACHINES,
}


def kernels():
    rng = np.random.default_rng(0)
    M, found = 5, {"rank_slope": {}}
    with limited_threads(1):
        for n in (10_240, 102_400, 1_024_000, 10_240_000):
            labels = Patterns.of(torch.from_numpy((rng.random((n, M)) < 0.05).astype(np.uint8)))
            fused = rng.normal(size=n).astype(np.float32)
            found["rank_slope"][n] = timed(
                lambda f=fused, y=labels: rank_auc_slope(f, y, np.ones(M)), 9 if n < 10**6 else 3
            )
        scores = rng.random((BATCH, M)).astype(np.float32)
        context = rng.integers(0, 8, (BATCH, 2)).astype(np.int32)
        network = Network(NetworkConfig(objectives=M, context_slots=(8, 8)), scores=scores)
        step, index = Step(network, scores, context), np.arange(BATCH)
        slope = rng.normal(size=BATCH).astype(np.float32)
        found["forward"] = timed(lambda: step.forward(index), 15)
        found["backward"] = timed(lambda: step.backward(slope), 15)
        found["weights"] = len(step.weights.vector)
    return found


def timed(work, times):
    work()
    spent = []
    for _ in range(times):
        # Processor time: what else runs on this machine does not count.
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
    return median(spent)


def slope_seconds(kernel, n):
    known = sorted((int(size), spent) for size, spent in kernel["rank_slope"].items())
    sizes, times = zip(*known, strict=True)  # as numbers, which JSON has as texts
    return float(np.exp(np.interp(math.log(n), np.log(sizes), np.log(times))))


def simulated(kernel):
    """Return the parts of a step of N workers with 10,240 rows each, in seconds."""
    rows, compute = [], kernel["forward"] + kernel["backward"]
    for workers in (8, 16, 32, 64, 128, 256, 512, 1024):
        n, hops = workers * BATCH, math.ceil(math.log2(workers))
        # A score and a pattern of labels up, a slope down, all through one machine's network.
        gather = hops * LATENCY + 5 * n / BANDWIDTH
        scatter = hops * LATENCY + 4 * n / BANDWIDTH
        reduce = 2 * hops * (LATENCY + 4 * kernel["weights"] / BANDWIDTH)
        rank = slope_seconds(kernel, n)
        # Rows sent to the range of their score and back; each worker then ranks as many as it has.
        ranges = slope_seconds(kernel, BATCH) + 2 * (workers * 2e-6 + 9 * BATCH / BANDWIDTH)
        step = compute + gather + rank + scatter + reduce
        rows.append(
            {
                "workers": workers,
                "batch_rows": n,
                "compute": compute,
                "gather_and_scatter": gather + scatter,
                "rank": rank,
                "reduce": reduce,
                "step": step,
                # Than one worker that takes all rows of the batch.
                "times_as_fast": (workers * compute + rank) / step,
                "step_with_ranges": compute + ranges + reduce + 2 * hops * LATENCY,
            }
        )
    return rows


def plan(results, row_bytes):
    """Return what a day of 10 billion rows takes, from processor time per row.

    The blocks of a fit are dealt out whole, and the process in the middle, whose work has the size
    of the model, gets the sums of so many senders in place of two.
    """
    found = {"row_bytes": row_bytes, "stored_bytes": row_bytes * DAY_ROWS, "verbs": {}}
    for row in results:
        largest = max(other["rows"] for other in results if other["verb"] == row["verb"])
        if row["rows"] == largest and row["workers"] == 2:
            times = DAY_ROWS / row["rows"]
            seconds = (row["driver_seconds"] + row["worker_seconds"]) * times
            path, received = seconds / (MACHINES * CORES), times
            if row["verb"] == "fit":
                most = math.ceil(len(starts_of(DAY_ROWS)) / (MACHINES * CORES))
                each = row["worker_seconds"] / len(starts_of(row["rows"]))
                path, received = row["driver_seconds"] + most * each, SENDERS / row["workers"]
            found["verbs"][row["verb"]] = {
                "core_hours": seconds / 3600,
                "minutes": path / 60,
                "dollars": seconds / 3600 * CORE_HOUR,
                "received_bytes": row["received_bytes"] * received,
            }
    return found
