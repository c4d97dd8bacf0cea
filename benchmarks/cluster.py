"""What verbs cost on a Ray cluster of this machine, and what that comes to on a thousand machines.

    python benchmarks/cluster.py --rows 1000000,4000000 --folder DRAWN \\
        -o benchmarks/results/cluster.json
    python benchmarks/cluster.py --rows 100000000 --verbs score --repeats 1 --folder DRAWN -o …
    python benchmarks/cluster.py --table -o benchmarks/results/cluster.json

Each measurement is a process of its own with a cluster of its own, of one or two workers with one
thread each, in turn, so that what else the machine does meets both. Stored are medians; `seconds`
are without the start of Ray and of its workers, which is `start_seconds`. The rows are those of
scale.py: with the same `--folder` they are drawn but once. Results of other verbs and sizes that
the file has stay. `--table` prints the rows of the table in docs/scale.md.
"""

import argparse
import json
import os
import pickle
import platform
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from cluster_plan import STATED, kernels, plan, simulated
from scale import PART, WORLD, drawn

import harmonrank as hr
from harmonrank.data.rows.log_blocks import FileBlocks
from harmonrank.engine import open_engine, using
from harmonrank.evaluation.partitioned import partitioned_quality
from harmonrank.fusion.fitting.block_fit import fit_in_blocks
from harmonrank.fusion.scoring.scoring_parts import score_files
from harmonrank.worlds import world

VERBS, WORKERS = ("fit", "score", "evaluate"), (1, 2)
SAME = ("verb", "rows", "workers")


class Counted:
    """An engine that counts the bytes which this process sends and receives."""

    def __init__(self, engine):
        self.engine, self.name, self.workers = engine, engine.name, engine.workers
        self.sent = self.received = 0
        self.call, self.parts, self.keep = engine.call, engine.parts, engine.keep
        self.together = engine.together

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
        schema = {
            "objectives": {name: f"p_{name}" for name in names},
            "context": list(place.context),
            "request": "request",
        }
        blocks = FileBlocks(source, hr.Schema.of(schema))
        return lambda _: fit_in_blocks(hr.HarmonRank(), blocks, most_rows=1)
    model = hr.load(scratch / "model")
    if verb == "score":
        return lambda engine: score_files(engine, model, source, scratch / "scored")
    blocks = FileBlocks(source, model.schema, size=1 << 20)
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
    import harmonrank.evaluation.partitioned_rows
    import harmonrank.fusion.fitting.block_fit  # noqa: F401


def alone(verb, rows, workers, source, scratch):
    """Measure in a process of its own."""
    given = ["--one", json.dumps([verb, rows, workers, str(source), str(scratch)])]
    done = subprocess.run(
        [sys.executable, __file__, *given], stdout=subprocess.PIPE, text=True, check=True
    )
    shutil.rmtree(scratch / "scored", ignore_errors=True)
    found = json.loads(done.stdout.splitlines()[-1])
    print({k: round(v, 2) if isinstance(v, float) else v for k, v in found.items()}, flush=True)
    return found


def growth(sizes, verbs, repeats, folder, scratch):
    """Yield the medians of every verb, size and number of workers."""
    files = drawn(folder, max(sizes))
    if not (scratch / "model").exists():
        with open_engine("local") as engine, using(engine):
            work = work_of("fit", files[0], scratch)
            work(engine).model.save(scratch / "model")
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
                found = {
                    k: same[0][k] if k in SAME else median(r[k] for r in same) for k in same[0]
                }
                yield found | {"runs": [run["seconds"] for run in same]}


def table(results):
    """Print rows of docs/scale.md."""
    for row in results:
        print(f"| {row['verb']} | {row['rows']:,} | {row['workers']} |" + " 0 |" * 8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="1000000,4000000")
    parser.add_argument("--verbs", default=",".join(VERBS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="Of rows that scale.py has drawn, or will.")
    parser.add_argument("--keep-kernels", action="store_true", help="Do not time them again.")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    if given.one:
        verb, rows, workers, source, scratch = json.loads(given.one)
        print(json.dumps(measured(verb, rows, workers, Path(source), Path(scratch))))
        return
    if given.output is None:
        parser.error("-o is needed")
    stored = json.loads(given.output.read_text()) if given.output.exists() else {"results": []}
    if given.table:
        table(stored["results"])
        return
    sizes = sorted(int(n) for n in given.rows.split(","))
    with TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch) / "drawn"
        folder.mkdir(parents=True, exist_ok=True)
        row_bytes = drawn(folder, PART)[0].stat().st_size / PART
        for new in growth(sizes, given.verbs.split(","), given.repeats, folder, Path(scratch)):
            key = [new[k] for k in SAME]
            results = [row for row in stored["results"] if [row[k] for k in SAME] != key]
            order = {verb: k for k, verb in enumerate(VERBS)}
            stored["results"] = sorted(
                [*results, new], key=lambda r: (order[r["verb"]], r["rows"], r["workers"])
            )
            write(given.output, stored, row_bytes, given)


def write(path, stored, row_bytes, given):
    if not given.keep_kernels or "kernels" not in stored:
        stored["kernels"] = kernels()
        given.keep_kernels = True
    stored |= {
        "command": f"python benchmarks/cluster.py --rows {given.rows} --repeats {given.repeats}",
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.machine(),
            "load": os.getloadavg()[0],
        },
        "stated": STATED,
        "simulated": simulated(stored["kernels"]),
        "plan": plan(stored["results"], row_bytes),
    }
    path.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
