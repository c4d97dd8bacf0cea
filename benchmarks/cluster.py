"""What verbs cost on a Ray cluster of this machine, and what that comes to on a thousand machines.

    python benchmarks/cluster.py --rows 1000000 10000000 --folder DRAWN \\
        --json benchmarks/results/cluster.json

Each measurement is a process of its own with a cluster of its own, of one or two workers with one
thread each, in turn, so that what else the machine does meets both. Stored are medians; `seconds`
are without the start of Ray and of its workers, which is `start_seconds`. The rows are those of
scale.py: with the same `--folder` they are drawn but once. Results of other verbs and sizes that
the file has stay. The plan is computed from them and from network figures that are stated.
"""

import json
import math
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from scale import PART, WORLD, drawn
from store import options, write

import harmonrank as hr
from harmonrank.data import log_blocks
from harmonrank.engine import open_engine, using
from harmonrank.evaluation import partitioned_quality
from harmonrank.fusion import score_files
from harmonrank.worlds import world

VERBS, WORKERS = ("fit", "score", "evaluate"), (1, 2)
SAME = ("verb", "rows", "workers")
# Stated: cores of a machine and the dollars of one in an hour, rows of a day, machines.
CORES, CORE_HOUR, DAY_ROWS, MACHINES = 16, 0.05, 10**10, 1000
# Of a fit: rows of a block, and how many workers send sums to the process in the middle.
BLOCK_ROWS, SENDERS = 262_144, 32


class Counted:
    """An engine that counts the bytes which this process sends and receives."""

    def __init__(self, engine):
        self.engine, self.name, self.workers = engine, engine.name, engine.workers
        self.sent = self.received = 0
        self.call, self.keep = engine.call, engine.keep

    def put(self, value):
        if "ObjectRef" not in type(value).__name__:
            self.sent += size(value)
        return self.engine.put(value)

    def get(self, promise):
        value = self.engine.get(promise)
        self.received += size(value)
        return value


def size(value):
    """Return how many bytes a value takes to send; arrays are not copied for that."""
    arrays = []
    rest = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    return len(rest) + sum(array.raw().nbytes for array in arrays)


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
        while not self.over.wait(1.0):  # More often, it would take part of a core by itself.
            self.last |= processes()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.last |= processes()

    def spent(self, pid):
        return self.last[pid][1] - self.first.get(pid, ("", 0.0))[1]


def work_of(verb, source, scratch):
    """Return what a verb does on an engine; the model comes from the first million rows."""
    if verb == "fit":
        place = world(WORLD)
        names = [f"y{m}" for m in range(len(place.objectives))]
        scores = {name: f"p_{name}" for name in names}
        schema = hr.Schema(scores, context=list(place.context), request="request")
        return lambda _: hr.HarmonRank().fit(source, schema, memory="1MB")  # in blocks
    model = hr.load(scratch / "model")
    if verb == "score":
        return lambda engine: score_files(engine, model, source, scratch / "scored")
    blocks = log_blocks(source, model.schema, "1MB")
    return lambda engine: partitioned_quality(model, blocks, engine)


def measured(verb, rows, workers, source, scratch):
    """Do a verb once; return what it took, the start of Ray and its workers apart."""
    work, begun = work_of(verb, source, scratch), time.perf_counter()
    with open_engine("ray", workers=workers, for_states=verb == "fit") as engine:
        if verb == "fit":
            loaded = [engine.keep(int, k).call(ready) for k in range(workers)]
        else:
            loaded = [engine.call(ready, k) for k in range(2 * workers)]
        list(map(engine.get, loaded))
        counted, started = Counted(engine), time.perf_counter()
        with Watch() as watch, using(counted):
            work(counted)
        seconds, me = time.perf_counter() - started, os.getpid()
    theirs = [pid for pid, facts in watch.last.items() if facts[0].startswith("ray::")]
    busy = sorted((watch.spent(pid) for pid in theirs), reverse=True)
    return {
        "verb": verb,
        "rows": rows,
        "workers": workers,
        "seconds": seconds,
        "start_seconds": started - begun,
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


def ready(_):
    """Load what workers need, which a cluster that runs has done long before."""
    time.sleep(0.2)  # long enough that each worker gets one
    import harmonrank.model  # noqa: F401


def alone(verb, rows, workers, source, scratch):
    """Measure in a process of its own."""
    given = ["--one", json.dumps([verb, rows, workers, str(source), str(scratch)])]
    done = subprocess.run(
        [sys.executable, __file__, *given], stdout=subprocess.PIPE, text=True, check=True
    )
    shutil.rmtree(scratch / "scored", ignore_errors=True)
    costs = json.loads(done.stdout.splitlines()[-1])
    print({k: round(v, 2) if isinstance(v, float) else v for k, v in costs.items()}, flush=True)
    return costs


def growth(sizes, verbs, repeats, folder, scratch):
    """Yield the medians of every verb, size and number of workers."""
    files = drawn(folder, max(sizes))
    if not (scratch / "model").exists():
        with open_engine("local") as engine, using(engine):
            work = work_of("fit", files[0], scratch)
            work(engine).save(scratch / "model")
    for rows in sizes:
        source = scratch / f"rows-{rows}"
        source.mkdir()
        for path in files[: -(-rows // PART)]:
            (source / path.name).symlink_to(path.resolve())
        for verb in verbs:
            runs = [
                alone(verb, rows, workers, source, scratch)
                for _ in range(repeats)
                for workers in WORKERS
            ]
            for workers in WORKERS:
                same = [run for run in runs if run["workers"] == workers]
                costs = {
                    k: same[0][k] if k in SAME else median(r[k] for r in same) for k in same[0]
                }
                yield costs | {"runs": [run["seconds"] for run in same]}


def plan(results, row_bytes):
    """Return what a day of 10 billion rows takes, from processor time per row.

    The blocks of a fit are dealt out whole, and the process in the middle, whose work has the size
    of the model, gets the sums of so many senders in place of two. A day is not measured whole.
    """
    verbs = {}
    for row in results:
        largest = max(other["rows"] for other in results if other["verb"] == row["verb"])
        if row["rows"] != largest or row["workers"] != 2 or row["verb"] == "evaluate":
            continue
        times = DAY_ROWS / row["rows"]
        seconds = (row["driver_seconds"] + row["worker_seconds"]) * times
        path, received = seconds / (MACHINES * CORES), times
        if row["verb"] == "fit":
            most = math.ceil(DAY_ROWS / BLOCK_ROWS / (MACHINES * CORES))
            each = row["worker_seconds"] / math.ceil(row["rows"] / BLOCK_ROWS)
            path, received = row["driver_seconds"] + most * each, SENDERS / row["workers"]
        verbs[row["verb"]] = {
            "core_hours": seconds / 3600,
            "minutes": path / 60,
            "dollars": seconds / 3600 * CORE_HOUR,
            "received_bytes": row["received_bytes"] * received,
        }
    return {"row_bytes": row_bytes, "stored_bytes": row_bytes * DAY_ROWS, "verbs": verbs}


if __name__ == "__main__":
    given = options(
        __doc__, rows=[1_000_000, 4_000_000], verbs=list(VERBS), repeats=3, folder=Path, one=str
    )
    if given.one:
        verb, rows, workers, source, scratch = json.loads(given.one)
        print(json.dumps(measured(verb, rows, workers, Path(source), Path(scratch))))
        raise SystemExit
    there = given.json is not None and given.json.exists()
    results = json.loads(given.json.read_text())["results"] if there else []
    with TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch) / "drawn"
        folder.mkdir(parents=True, exist_ok=True)
        row_bytes = drawn(folder, PART)[0].stat().st_size / PART
        for new in growth(sorted(given.rows), given.verbs, given.repeats, folder, Path(scratch)):
            others = [row for row in results if any(row[k] != new[k] for k in SAME)]
            place = {verb: k for k, verb in enumerate(VERBS)}
            results = sorted(
                [*others, new], key=lambda r: (place[r["verb"]], r["rows"], r["workers"])
            )
            write(given.json, {"results": results, "plan": plan(results, row_bytes)})
