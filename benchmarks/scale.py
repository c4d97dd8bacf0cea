"""Time and peak memory of logs that are read in blocks: fit, evaluate and score, by rows.

    python benchmarks/scale.py --rows 10000000 100000000 --json benchmarks/results/scale.json

Rows of a world with five objectives are drawn into parquet files of a million rows each, which
takes some 20 bytes a row. Each command runs as a process of its own with `--memory 3GB`, and the
system tells its peak memory: the resident set, which the cache of files is no part of. Temporary
files take up to 80 bytes a row while the default is fitted. With `--folder` the rows are kept, and
drawn but once. `--wide 200000,5,1000` fits 200,000 rows of five objectives and four context
features of 1,000 values each, in memory. `--file 20000000` scores one parquet file of so many rows
beside polars that reads and writes the same columns, each a process of its own, in turns. Results
of other sizes that the file has stay.
"""

import json
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from store import options, run_process, run_verb, write

from harmonrank.worlds import world

WORLD, PART, OF_REQUEST = "conflict", 1_000_000, 20
MEMORY = "3GB"
ROUNDS = 5
IN_MEMORY = "import sys, polars as pl; pl.read_parquet(sys.argv[1]).write_parquet(sys.argv[2])"
STREAMING = "import sys, polars as pl; pl.scan_parquet(sys.argv[1]).sink_parquet(sys.argv[2])"


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


def run(rows: int, folder: Path, scratch: Path) -> dict:
    """Draw, fit, evaluate and score so many rows."""
    source = scratch / f"rows-{rows}"
    source.mkdir()
    for path in drawn(folder, rows):
        (source / path.name).symlink_to(path.resolve())
    model, out, told = scratch / f"model-{rows}", scratch / "scored.parquet", scratch / "told.json"
    memory = ("--memory", MEMORY)
    figures: dict = {"rows": rows, "bytes": sum(p.stat().st_size for p in source.iterdir())}
    figures["fit"] = run_verb(
        rows, "fit", "--train", source, *columns(), "-o", model, *memory, "--json", told
    )
    figures["fit"]["blocks"] = json.loads(told.read_text()).get("blocks")
    figures["evaluate"] = run_verb(rows, "evaluate", model, source, *memory, "--json", told)
    quality = json.loads(told.read_text())
    figures["evaluate"] |= {"auc_sum": quality["auc_sum"], "ci": quality["ci"]}
    figures["score"] = run_verb(rows, "score", model, source, "-o", out)
    out.unlink()
    return figures


def wide(path: Path, rows: int, objectives: int, values: int) -> list[str]:
    """Draw rows with so many objectives and four context features of so many values each."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, values, (rows, 4))
    effects = rng.normal(0, 0.3, (4, values, objectives))
    signal = -3 + sum(effects[f][codes[:, f]] for f in range(4))
    signal += 0.5 * rng.normal(size=(rows, 1)) + 0.7 * rng.normal(size=(rows, objectives))
    noise = rng.normal(0, 0.5, signal.shape) * (1 + 0.5 * (codes[:, :1] % 2))
    labels = rng.random(signal.shape) < 1 / (1 + np.exp(-signal - 0.2 * np.tanh(signal + 3)))
    scores = (1 / (1 + np.exp(-signal - noise))).astype(np.float32)
    columns = {f"p_y{m}": scores[:, m] for m in range(objectives)}
    columns |= {f"y{m}": labels[:, m] for m in range(objectives)}
    columns |= {f"c{f}": codes[:, f] for f in range(4)}
    pl.DataFrame(columns).write_parquet(path)
    names = [f"y{m}" for m in range(objectives)]
    given = ["--scores", ",".join(f"p_{name}" for name in names), "--labels", ",".join(names)]
    return [*given, "--context", "c0,c1,c2,c3"]


def run_wide(rows: int, objectives: int, values: int, scratch: Path) -> dict:
    """Fit the default on such rows, in memory."""
    path, model = scratch / "wide.parquet", scratch / f"wide-{rows}-{objectives}-{values}"
    given = wide(path, rows, objectives, values)
    about = {"rows": rows, "objectives": objectives, "values": values}
    return about | {"fit": run_verb(rows, "fit", "--train", path, *given, "-o", model)}


def run_file(rows: int, folder: Path, scratch: Path) -> dict:
    """Score one file, and let polars read and write what was written; medians of rounds in turn."""
    one, model, out = (scratch / name for name in ("one.parquet", "one-model", "out.parquet"))
    paths = drawn(folder, rows)
    pl.scan_parquet(paths).sink_parquet(one, row_group_size=250_000)
    run_verb(PART, "fit", "--train", paths[0], *columns(), "-o", model)
    score = ("score", model, one, "-o", out, "--overwrite")
    run_verb(rows, *score)  # so that kernels are compiled and files are in the cache
    same = out.rename(scratch / "same.parquet")
    works = {
        "harmonrank": lambda: run_verb(rows, *score),
        "polars": lambda: run_process("polars", rows, "-c", IN_MEMORY, same, out),
        "polars_streaming": lambda: run_process("streaming", rows, "-c", STREAMING, same, out),
    }
    runs = [{name: work() for name, work in works.items()} for _ in range(ROUNDS)]
    compared: dict = {"rows": rows, "rounds": ROUNDS, "columns": len(pl.read_parquet_schema(same))}
    for name in works:
        figures = ("seconds", "cpu_seconds", "peak_megabytes")
        compared[name] = {k: median(one[name][k] for one in runs) for k in figures}
    for figure in ("seconds", "cpu_seconds"):
        ours, peers = compared["harmonrank"][figure], [compared[n][figure] for n in [*works][1:]]
        compared[f"ratio_of_{figure}"] = min(peers) / ours
        print(f"score is {min(peers) / ours:.2f} times as fast as the faster polars by {figure}")
    return compared


if __name__ == "__main__":
    given = options(
        __doc__, rows=[1_000_000], folder=Path, draw_only=False, wide=["none"], file=[0]
    )
    with TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch) / "drawn"
        folder.mkdir(parents=True, exist_ok=True)
        if given.draw_only:
            drawn(folder, max(given.rows))
            raise SystemExit
        wide_ones = [map(int, text.split(",")) for text in given.wide if text != "none"]
        jobs = [("wide", run_wide, job) for job in wide_ones]
        jobs += [("files", run_file, (rows, folder)) for rows in given.file if rows]
        jobs += [] if jobs else [("results", run, (rows, folder)) for rows in sorted(given.rows)]
        there = given.json is not None and given.json.exists()
        stored = json.loads(given.json.read_text()) if there else {}  # other sizes stay
        for part, work, job in jobs:
            new = work(*job, Path(scratch))
            sizes = [k for k in ("rows", "objectives", "values") if k in new]
            others = [r for r in stored.get(part, []) if any(r[k] != new[k] for k in sizes)]
            stored[part] = [*others, new]
            write(given.json, stored)
