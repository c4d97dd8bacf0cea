"""Time and peak memory of a log of 20M rows, from raw files to a comparison of fusions.

    python benchmarks/large_log.py --json benchmarks/results/large_log.json

Each command runs as a process of its own, whose peak memory the system tells: simulate the raw
files, import them, then the pipeline on the same raw files, which imports them once more, trains
the networks, scores and fuses. The pipeline takes few passes and folds unless told otherwise:
memory does not depend on either. About 5 GB of disk are needed, and given back.
"""

import argparse
import json
import os
import platform
from pathlib import Path
from tempfile import TemporaryDirectory

from commands import measured

LIMITS = {"import": 1536, "pipeline": 4096}
"""Megabytes that each may take."""


def limited(name: str, rows: int, *arguments: object) -> dict:
    """Run a command; return what it took, and the memory that it may take."""
    return measured(name, rows, *arguments) | {"most_megabytes": LIMITS.get(name)}


def run(options: argparse.Namespace) -> dict:
    """Simulate, import, and go through the pipeline, in a folder that is removed afterwards."""
    rows, result = options.rows, {}
    # Commands name files of the folder they run in, so that the stored ones can be repeated.
    os.chdir(options.place)
    size = ["--users", options.users, "--items", options.items, "--rows", rows]
    result["simulate"] = limited("simulate", rows, "simulate", "kuairand", *size, "-o", "raw")
    result["import"] = limited("import", rows, "data", "import", "kuairand", "raw", "-o", "log")
    few = ["--epochs", options.epochs, "--folds", options.folds]
    told = ["--json", "numbers.json"]
    result["pipeline"] = limited("pipeline", rows, "pipeline", "raw", "-o", "out", *few, *told)
    numbers = json.loads(Path("numbers.json").read_text())
    steps = {
        path.stem: json.loads(path.read_text())["content"]["seconds"]
        for path in Path("out/steps").glob("*.json")
    }
    result["pipeline"] |= {"step_seconds": steps, "outcome": numbers}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--users", type=int, default=200_000)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    path = options.json.resolve() if options.json else None
    load = os.getloadavg()[0]
    home = Path.cwd()
    with TemporaryDirectory() as scratch:
        options.place = scratch
        result = run(options)
        os.chdir(home)
    machine = {
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "load_before": load,
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
    }
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps({"machine": machine, "rows": options.rows, **result}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
