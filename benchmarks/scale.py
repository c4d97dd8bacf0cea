"""Time and peak memory of logs that are read in blocks: fit, evaluate and score, by rows.

    python benchmarks/scale.py --rows 10000000 --rows 100000000 --json benchmarks/results/scale.json

Rows of a world with five objectives are drawn into parquet files of a million rows each, which
takes some 30 bytes a row. Each command runs as a process of its own with `--memory 3GB`, and the
system tells its peak memory: the resident set, which the cache of files is no part of. Temporary
files take up to 80 bytes a row while the default is fitted. With `--folder` the rows are kept, and
drawn but once.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from harmonrank.data.worlds import world

WORLD, PART, OF_REQUEST = "conflict", 1_000_000, 20
MEMORY = "3GB"


def drawn(folder: Path, rows: int) -> list[Path]:
    """Draw rows into files of `PART` rows; those that are there already stay."""
    place, paths = world(WORLD), []
    for first in range(0, rows, PART):
        path = folder / f"part-{first // PART:05d}.parquet"
        paths.append(path)
        if path.exists():
            continue
        count = min(PART, rows - first)
        sample = place.sample(count, seed=1, start=first)
        names = [f"y{m}" for m in range(sample.scores.shape[1])]
        columns = {
            f"p_{n}": c.astype(np.float32) for n, c in zip(names, sample.scores.T, strict=True)
        }
        columns |= {n: c.astype(np.uint8) for n, c in zip(names, sample.labels.T, strict=True)}
        columns |= {name: np.asarray(codes, np.int16) for name, codes in sample.context.items()}
        columns["request"] = (first + np.arange(count)) // OF_REQUEST
        partial = path.with_suffix(".partial")
        pl.DataFrame(columns).write_parquet(partial, row_group_size=250_000)
        partial.rename(path)
    return paths


def columns() -> list[str]:
    place = world(WORLD)
    names = [f"y{m}" for m in range(len(place.objectives))]
    return [
        *("--scores", ",".join(f"p_{name}" for name in names), "--labels", ",".join(names)),
        *("--context", ",".join(place.context), "--request", "request"),
    ]


def measured(name: str, rows: int, *arguments: object) -> dict:
    """Run a command of harmonrank to its end; return seconds and peak memory."""
    command = [sys.executable, "-m", "harmonrank", *map(str, arguments), "--quiet"]
    started = time.perf_counter()
    child = os.spawnv(os.P_NOWAIT, sys.executable, command)
    _, status, used = os.wait4(child, 0)
    seconds = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"`harmonrank {' '.join(command[3:])}` failed.")
    cpu = used.ru_utime + used.ru_stime
    result = {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "rows_per_second": rows / seconds,
        "rows_per_cpu_second": rows / cpu,
        "peak_megabytes": used.ru_maxrss // 1024,
    }
    print(
        f"{name:9s} {rows:12,} rows {seconds:7.0f} s {rows / cpu:9,.0f} rows per processor second "
        f"{cpu:7.0f} processor seconds {result['peak_megabytes']:6,} MB",
        flush=True,
    )
    return result


def run(rows: int, folder: Path, scratch: Path) -> dict:
    """Draw, fit, evaluate and score so many rows."""
    source = scratch / f"rows-{rows}"
    source.mkdir()
    for path in drawn(folder, rows):
        (source / path.name).symlink_to(path.resolve())
    model, out, told = scratch / f"model-{rows}", scratch / "scored.parquet", scratch / "told.json"
    memory = ("--memory", MEMORY)
    found: dict = {"rows": rows, "bytes": sum(p.stat().st_size for p in source.iterdir())}
    found["fit"] = measured(
        "fit", rows, "fit", "--train", source, *columns(), "-o", model, *memory, "--json", told
    )
    found["fit"]["blocks"] = json.loads(told.read_text()).get("blocks")
    found["evaluate"] = measured(
        "evaluate", rows, "evaluate", model, source, *memory, "--json", told
    )
    quality = json.loads(told.read_text())
    found["evaluate"] |= {"auc_sum": quality["auc_sum"], "ci": quality["ci"]}
    found["score"] = measured("score", rows, "score", model, source, "-o", out)
    out.unlink()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, action="append")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--draw-only", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sizes = sorted(options.rows or [1_000_000])
    load = os.getloadavg()[0]
    with TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch) / "drawn"
        folder.mkdir(parents=True, exist_ok=True)
        if options.draw_only:
            drawn(folder, sizes[-1])
            return
        results = []
        for rows in sizes:
            results.append(run(rows, folder, Path(scratch)))
            machine = {
                "cores": os.cpu_count(),
                "processor": platform.processor() or platform.machine(),
                "load_before": load,
                "threads": os.environ.get("OMP_NUM_THREADS", "all"),
                "memory": MEMORY,
            }
            if options.json:
                text = json.dumps({"machine": machine, "results": results}, indent=1)
                options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
