"""What benchmarks share: options, results that say which code made them, tables of Markdown."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harmonrank.data import Log
from harmonrank.metrics import auc, best_score
from harmonrank_lab.bench import machine
from harmonrank_lab.made import made_by
from harmonrank_lab.worlds import WORLDS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
# The world `requests` has a benchmark of its own, per_request.py; `trained` is made of networks.
LIFELIKE = ["clustered", "drifting", "three-way", "nested", "skewed-lists"]
EIGHT = [*(name for name in WORLDS if name not in ("requests", *LIFELIKE)), "trained"]


def read(name: str) -> Any:
    """Return a stored result."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def options(text: str, *positional: str, **defaults: Any) -> argparse.Namespace:
    """Return the options of a script by their defaults, and `json`, where its result goes.

    A list takes several values, False is a flag, a type stands for an option without a default.
    """
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawTextHelpFormatter
    )
    for name in positional:
        parser.add_argument(name)
    for name, value in (defaults | {"json": Path}).items():
        flag = f"--{name.replace('_', '-')}"
        if value is False:
            parser.add_argument(flag, action="store_true")
        elif isinstance(value, type):
            parser.add_argument(flag, type=value)
        elif isinstance(value, list):
            parser.add_argument(flag, nargs="+", type=type(value[0]), default=value)
        else:
            parser.add_argument(flag, type=type(value), default=value)
    return parser.parse_args()


def write(path: Path | None, parts: dict[str, Any]) -> None:
    """Write a result whole, with the command, the machine and the code that made it."""
    if path is None:
        return
    command = " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    head = {"command": command, "machine": machine(), "code": made_by()}
    text = json.dumps(head | {k: v for k, v in parts.items() if k not in head}, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(path)


class Rows:
    """The rows of a result, written after each, so that a run that was stopped goes on.

    Args:
        path: The result.
        key: A row takes the place of one with the same values of these.
        keep: Whether the rows that are stored stay.
        again: Whether rows of other commits that are asked for are made again.
    """

    def __init__(
        self,
        path: Path | None,
        key: Iterable[str] = (),
        *,
        keep: bool = True,
        again: bool = False,
    ) -> None:
        self._path, self._key, self._again = path, tuple(key), again
        self._commit = made_by()["commit"]
        known = keep and path is not None and path.exists()
        self.rows = json.loads(path.read_text())["results"] if known and path else []

    def has(self, **key: Any) -> bool:
        """Whether there is a row with these values; one to be made again is forgotten."""
        same = [row for row in self.rows if all(row.get(k) == v for k, v in key.items())]
        if self._again:
            old = [row for row in same if row.get("commit") != self._commit]
            self.rows = [row for row in self.rows if row not in old]
            return len(old) < len(same)
        return bool(same)

    def add(self, row: dict[str, Any]) -> None:
        """Print a row and keep it, in place of one with the same key."""
        shown = (f"{k}={v:.5g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items())
        print(*shown, flush=True)
        same = [row.get(k) for k in self._key]
        kept = [r for r in self.rows if not same or [r.get(k) for k in self._key] != same]
        self.rows = [*kept, {**row, "commit": self._commit}]
        write(self._path, {"results": self.rows})


def run_process(name: str, rows: int, *arguments: object) -> dict[str, Any]:
    """Run Python to its end in a process of its own; return seconds and peak memory."""
    command = [sys.executable, *map(str, arguments)]
    started = time.perf_counter()
    child = os.spawnv(os.P_NOWAIT, sys.executable, command)
    _, status, used = os.wait4(child, 0)
    seconds = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"`{' '.join(command[1:])}` failed.")
    cpu = used.ru_utime + used.ru_stime
    result = {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "rows_per_second": rows / seconds,
        "rows_per_cpu_second": rows / cpu,
        "peak_megabytes": used.ru_maxrss // 1024,
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
    }
    print(name, {k: round(v, 1) if isinstance(v, float) else v for k, v in result.items()})
    return result


def run_verb(rows: int, *arguments: object) -> dict[str, Any]:
    """Run a verb of harmonrank; files are told by their names, wherever they lie."""
    costs = run_process(str(arguments[0]), rows, "-m", "harmonrank", *arguments, "--quiet")
    told = [a.name if isinstance(a, Path) else str(a) for a in arguments]
    return {"command": " ".join(["harmonrank", *told])} | costs


def resident(process: int | str = "self") -> float:
    """Return the resident memory of a process, in megabytes."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 2)


def clocked(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what a call returns, its seconds and the processor's."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = work()
    return value, time.perf_counter() - wall, time.process_time() - cpu


def exact(fused: np.ndarray, log: Log) -> float:
    """Return the AUC-sum by true probabilities."""
    return float(auc(fused, log.truth).sum())


def ceiling(log: Log) -> float:
    """Return the best possible one."""
    return exact(best_score(log.truth), log)


TABLES: dict[str, Callable[[], str]] = {}
"""How the tables of pages are made, by the names by which pages ask for them."""


def table(make: Callable[[], str]) -> Callable[[], str]:
    """Make a function known by its name, with dashes."""
    TABLES[make.__name__.replace("_", "-")] = make
    return make


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]], texts: int = 1) -> str:
    """Return a table whose first columns are texts and whose others stand to the right."""
    lines = [f"| {' | '.join(head)} |", "|---" * texts + "|--:" * (len(head) - texts) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def short(value: float, digits: int = 4) -> str:
    """Return a number without its leading zero."""
    return f"{value:.{digits}f}".replace("0.", ".", 1)


def span(values: Sequence[float], form: str) -> str:
    """Return the least and the largest of some values."""
    return f"{min(values):{form}}–{max(values):{form}}"


def listed(values: dict[str, Any], form: str) -> list[str]:
    """Return values in a format."""
    return [format(value, form) for value in values.values()]
