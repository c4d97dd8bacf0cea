"""Commands of harmonrank as processes of their own, and what each took."""

import os
import sys
import time
from pathlib import Path


def measured(name: str, rows: int, *arguments: object) -> dict:
    """Run a command of harmonrank to its end; return seconds and peak memory."""
    found = run_process(name, rows, "-m", "harmonrank", *arguments, "--quiet")
    # Files are told by their names, whatever the temporary folder was called.
    told = [a.name if isinstance(a, Path) else str(a) for a in arguments]
    return {"command": " ".join(["harmonrank", *told])} | found


def run_process(name: str, rows: int, *arguments: object) -> dict:
    """Run Python to its end; return seconds and peak memory."""
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
    print(
        f"{name:9s} {rows:12,} rows {seconds:7.0f} s {rows / cpu:9,.0f} rows per processor second "
        f"{cpu:7.0f} processor seconds {result['peak_megabytes']:6,} MB",
        flush=True,
    )
    return result
