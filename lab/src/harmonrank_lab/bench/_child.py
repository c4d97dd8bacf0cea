"""Child: work in a process of its own, whose memory and start can be measured."""

__all__ = ["first_score", "in_child"]

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

_MEGABYTE = 1e6
_WARM_ROWS = 20_000


# Whatever this package imports for a benchmark must not help a first score.
_FIRST_SCORE = """
from sys import argv
from time import perf_counter
started = perf_counter()
import harmonrank
harmonrank.load(argv[1]).score(argv[2])
print(perf_counter() - started)
"""


def first_score(model: Path, data: Path, *, compiling: bool = False) -> float:
    """Return the seconds that a new process takes to import, load and score.

    Args:
        model: Folder of a saved model.
        data: What is scored.
        compiling: Whether no kernel has been kept, so that all are compiled.
    """
    command = [sys.executable, "-c", _FIRST_SCORE, str(model), str(data)]
    with TemporaryDirectory() as empty:
        environment = os.environ | ({"NUMBA_CACHE_DIR": empty} if compiling else {})
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


def in_child(task: str, **arguments: Any) -> dict[str, float]:
    """Run a task of this file in a new process; return its numbers."""
    text = json.dumps(arguments, default=str)
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, task, text], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"the {task} of {text} failed: {done.stderr.strip()[-500:]}")
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def score_file(model: str, data: str, output: str) -> dict[str, float]:
    """Score a parquet file into another one."""
    from harmonrank.fusion import load
    from harmonrank.fusion import score_file as score

    fitted = load(model)
    before, started = _peak_mb(), perf_counter()
    score(fitted, data, output)
    return {"seconds": perf_counter() - started, "before_mb": before, "peak_mb": _peak_mb()}


def fit(method: str, data: str, objectives: int, options: dict[str, Any]) -> dict[str, float]:
    """Fit a method on a file; its kernels are loaded before the clock starts."""
    from harmonrank.fusion import method_class
    from harmonrank_lab.bench._rows import schema_of, table_of

    schema, kind = schema_of(objectives), method_class(method)
    kind(**_enough(options)).fit(table_of(_WARM_ROWS, objectives), schema)
    before, started = _peak_mb(), perf_counter()
    kind(**options).fit(data, schema)
    return {"seconds": perf_counter() - started, "before_mb": before, "peak_mb": _peak_mb()}


def _enough(options: dict[str, Any]) -> dict[str, Any]:
    # A network's fit on few rows would not use the kernels.
    return {**options, "epochs": 20, "patience": 20} if "epochs" in options else options


def _peak_mb() -> float:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts kilobytes, macOS bytes.
    return peak / _MEGABYTE if sys.platform == "darwin" else peak * 1024 / _MEGABYTE


_TASKS: dict[str, Callable[..., dict[str, float]]] = {
    "score_file": score_file,
    "fit": fit,
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(_TASKS[sys.argv[1]](**json.loads(sys.argv[2]))) + "\n")
