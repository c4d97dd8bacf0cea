"""What verbs cost on a Ray cluster of this machine, and what that comes to on a thousand machines.

    python benchmarks/cluster.py [--rows 1000000,4000000] -o benchmarks/results/cluster.json

Growth is measured with one and two workers of one thread each. The step of a global batch is
simulated from the kernels' times, measured here, and from network figures that are stated, not
measured.
"""

import argparse
import json
import math
import os
import pickle
import platform
import shutil
import threading
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import torch

from harmonrank.data import Schema
from harmonrank.data.blocks import MOST_GROUPS, starts_of
from harmonrank.data.log_blocks import LogBlocks
from harmonrank.data.worlds import world
from harmonrank.engine import open_engine, using
from harmonrank.evaluation import simulate
from harmonrank.evaluation.partitioned import partitioned_quality
from harmonrank.losses import Patterns, rank_auc_slope
from harmonrank.methods.block_fit import fit_in_blocks
from harmonrank.methods.harmonrank import HarmonRank
from harmonrank.methods.scoring_parts import score_files
from harmonrank.model import Network, NetworkConfig
from harmonrank.model.fused import Step
from harmonrank.threads import limited_threads

BATCH = 10_240
LATENCY, BANDWIDTH = 50e-6, 25e9 / 8  # stated: of one message, and of a machine's network
CORES, CORE_HOUR = 16, 0.05  # stated: of a machine, and its price in dollars
DAY_ROWS, MACHINES = 10**10, 1000


class Counted:
    """An engine that counts the bytes which this process sends and receives."""

    def __init__(self, engine):
        self.engine, self.name, self.workers = engine, engine.name, engine.workers
        self.sent = self.received = 0
        self.call, self.parts, self.keep = engine.call, engine.parts, engine.keep

    def put(self, value):
        if "ObjectRef" not in type(value).__name__:
            self.sent += len(pickle.dumps(value))
        return self.engine.put(value)

    def get(self, promise):
        value = self.engine.get(promise)
        self.received += len(pickle.dumps(value))
        return value


def processes():
    """Return the processor seconds and the peak memory in MB of each process below this one."""
    parents, facts = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parts = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            status = (folder / "status").read_text()
            name = (folder / "cmdline").read_text().split("\0")[0]
        except OSError:
            continue
        peak = [line for line in status.splitlines() if line.startswith("VmHWM")]
        seconds = (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
        parents[int(folder.name)] = int(parts[1])
        facts[int(folder.name)] = name, seconds, int(peak[0].split()[1]) / 1024 if peak else 0.0
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return {pid: facts[pid] for pid in below}


class Watch:
    """Notes the processor time and peak memory of every process, as some end before the work."""

    def __enter__(self):
        Path("/proc/self/clear_refs").write_text("5")  # peaks begin anew
        self.first, self.last, self.over = processes(), {}, threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def look(self):
        while not self.over.wait(0.2):
            self.last |= processes()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.last |= processes()

    def spent(self, pid):
        return self.last[pid][1] - self.first.get(pid, ("", 0.0))[1]


def measured(verb, rows, workers, engine, work):
    counted = Counted(engine)
    started = time.perf_counter()
    with Watch() as watch, using(counted):
        work(counted)
    seconds, me = time.perf_counter() - started, os.getpid()
    theirs = [pid for pid, facts in watch.last.items() if facts[0].startswith("ray::")]
    busy = sorted((watch.spent(pid) for pid in theirs), reverse=True)
    found = {
        "verb": verb,
        "rows": rows,
        "workers": workers,
        "seconds": seconds,
        "driver_seconds": watch.spent(me),
        "worker_seconds": sum(busy),
        # What would pass on free cores: this process, then the worker that had the most to do. One
        # worker may be several processes, one after the other.
        "path_seconds": watch.spent(me) + max(busy[0], sum(busy) / workers),
        "worker_peak_mb": max(watch.last[pid][2] for pid in theirs),
        "driver_peak_mb": watch.last[me][2],
        "sent_bytes": counted.sent,
        "received_bytes": counted.received,
    }
    print({k: round(v, 2) if isinstance(v, float) else v for k, v in found.items()}, flush=True)
    return found


def growth(folder, sizes):
    files, results = [], []
    for k in range(
        max(sizes) // 1_000_000
    ):  # rows of their own: repeated ones would prove too much
        simulate(world("conflict"), 1_000_000, folder / f"world-{k}", seed=1 + k)
        files.append(folder / f"world-{k}" / "train.parquet")
    schema = Schema.read(folder / "world-0" / "schema.toml")
    for rows in sizes:
        parts = folder / f"log-{rows}"
        parts.mkdir()
        for k, file in enumerate(files[: rows // 1_000_000]):
            os.link(file, parts / f"part-{k:03}.parquet")
        for workers in (1, 2):
            with open_engine("ray", workers=workers) as engine:
                list(map(engine.get, [engine.call(_warm, k) for k in range(2 * workers)]))
                model, out = HarmonRank(), folder / f"scored-{rows}-{workers}"
                given = rows, workers, engine
                blocks = LogBlocks(parts, schema)
                verbs = {
                    "fit": lambda _, m=model, b=blocks: fit_in_blocks(m, b, most_rows=1),
                    "score": lambda e, m=model, p=parts, o=out: score_files(e, m, p, o),
                    "evaluate": lambda e, m=model, p=parts: partitioned_quality(e, m, p),
                }
                results += [measured(verb, *given, work) for verb, work in verbs.items()]
                shutil.rmtree(out)
    return results, files[0].stat().st_size / 1_000_000


def _warm(_):
    time.sleep(0.2)  # long enough that each worker gets one
    import harmonrank.methods.block_fit  # noqa: F401


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
    sizes = sorted(map(int, kernel["rank_slope"]))
    times = [kernel["rank_slope"][k] for k in sizes]
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

    A fit has work for as many workers as there are groups of blocks, each of which sends its sums.
    """
    largest = max(row["rows"] for row in results)
    found = {"row_bytes": row_bytes, "stored_bytes": row_bytes * DAY_ROWS, "verbs": {}}
    for row in results:
        if row["rows"] == largest and row["workers"] == 2:
            fit, times = row["verb"] == "fit", DAY_ROWS / row["rows"]
            seconds = (row["driver_seconds"] + row["worker_seconds"]) * times
            groups = len(starts_of(row["rows"]))
            received = MOST_GROUPS / groups if fit else times
            found["verbs"][row["verb"]] = {
                "core_hours": seconds / 3600,
                "minutes": seconds / 60 / (MOST_GROUPS if fit else MACHINES * CORES),
                "dollars": seconds / 3600 * CORE_HOUR,
                "received_bytes": row["received_bytes"] * received,
            }
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="1000000,4000000")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        results, row_bytes = growth(Path(folder), [int(n) for n in given.rows.split(",")])
    kernel = kernels()
    print(kernel, flush=True)
    stated = {"latency": LATENCY, "bandwidth": BANDWIDTH, "cores": CORES, "core_hour": CORE_HOUR}
    document = {
        "command": f"python benchmarks/cluster.py --rows {given.rows}",
        "machine": {"cores": os.cpu_count(), "processor": platform.machine(), "shared": True},
        "stated": stated | {"day_rows": DAY_ROWS, "machines": MACHINES},
        "kernels": kernel,
        "results": results,
        "simulated": simulated(kernel),
        "plan": plan(results, row_bytes),
    }
    given.output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
