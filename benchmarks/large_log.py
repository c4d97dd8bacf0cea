"""Time and peak memory of a log of 20M rows, from raw files to a comparison of fusions.

    python benchmarks/large_log.py --json benchmarks/results/large_log.json

Each command runs as a process of its own, whose peak memory the system tells: simulate the raw
files, import them, then the pipeline on the same raw files, which imports them once more, trains
the networks, scores and fuses. The pipeline takes few passes and folds unless told otherwise:
memory does not depend on either. About 5 GB of disk are needed, and given back.
"""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from store import options, run_verb, write

if __name__ == "__main__":
    given = options(__doc__, rows=20_000_000, users=200_000, items=50_000, epochs=1, folds=2)
    path, rows = given.json and given.json.resolve(), given.rows
    size = ["--users", given.users, "--items", given.items, "--rows", rows]
    few = ["--epochs", given.epochs, "--folds", given.folds, "--json", "numbers.json"]
    with TemporaryDirectory() as scratch:
        # Commands name files of the folder they run in, so that the stored ones can be repeated.
        os.chdir(scratch)
        result = {
            "simulate": run_verb(rows, "lab", "simulate", "kuairand", *size, "-o", "raw"),
            "import": run_verb(rows, "lab", "data", "import", "kuairand", "raw", "-o", "log"),
            "pipeline": run_verb(rows, "lab", "pipeline", "raw", "-o", "out", *few),
        }
        result["pipeline"]["outcome"] = json.loads(Path("numbers.json").read_text())
        os.chdir("/")
    write(path, {"rows": rows, **result})
