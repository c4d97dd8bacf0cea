"""What docs/scale.md says of one machine, from scale.py, and of a cluster, from cluster.py."""

from collections.abc import Iterator
from typing import Any

from prose import claim, read

VERBS = ("fit", "score", "evaluate")
WORKERS = (1, 2)
STEPS = (8, 16, 32, 64, 128, 256, 512, 1024)


def sizes(verb: str) -> list[int]:
    return sorted({r["rows"] for r in read("cluster")["results"] if r["verb"] == verb})


def growth(verb: str, rows: int, workers: int) -> Any:
    wanted = {"verb": verb, "rows": rows, "workers": workers}
    (found,) = (r for r in read("cluster")["results"] if wanted.items() <= r.items())
    return found


def growth_row(verb: str, rows: int, workers: int) -> None:
    @claim("scale.md", f"| {verb} | {rows:,} | {workers} | " + " | ".join(["{}"] * 8) + " |")
    def figures() -> Iterator[str]:
        found = growth(verb, rows, workers)
        yield f"{found['seconds']:.0f}"
        for name in ("driver", "worker", "path"):
            yield f"{found[f'{name}_seconds']:.1f}"
        yield f"{found['driver_peak_mb']:.0f}"
        yield f"{found['worker_peak_mb']:.0f}"
        yield f"{found['sent_bytes'] / 1e6:.1f}"
        yield f"{found['received_bytes'] / 1e6:.1f}"


def step_row(workers: int) -> None:
    @claim("scale.md", f"| {workers:,} workers | " + " | ".join(["{}"] * 8) + " |")
    def figures() -> Iterator[str]:
        (row,) = (r for r in read("cluster")["simulated"] if r["workers"] == workers)
        yield f"{row['batch_rows']:,}"
        for name in ("compute", "gather_and_scatter", "rank", "reduce", "step"):
            yield f"{1e3 * row[name]:.1f}"
        yield f"{row['times_as_fast']:.1f}"
        yield f"{1e3 * row['step_with_ranges']:.1f}"


def plan_row(verb: str) -> None:
    @claim("scale.md", f"| {verb} a day | " + " | ".join(["{}"] * 4) + " |")
    def figures() -> Iterator[str]:
        row = read("cluster")["plan"]["verbs"][verb]
        yield f"{row['core_hours']:.0f}"
        yield f"{row['minutes']:.2f}"
        yield f"{row['dollars']:.2f}"
        yield f"{row['received_bytes'] / 1e9:.1f}"


for verb in VERBS:
    plan_row(verb)
    for rows in sizes(verb):
        for workers in WORKERS:
            growth_row(verb, rows, workers)
for workers in STEPS:
    step_row(workers)


@claim(
    "scale.md",
    "Counted so, two workers are {} times as fast as one in the fit of {} rows, {} times in "
    "scoring and {} times in measuring.",
)
def two_workers() -> Iterator[str]:
    yield from times_as_fast("path_seconds")


def times_as_fast(what: str) -> Iterator[str]:
    for verb in VERBS:
        rows = sizes(verb)[-1]
        one, two = (growth(verb, rows, n)[what] for n in WORKERS)
        yield f"{one / two:.2f}"
        if verb == "fit":
            yield f"{rows:,}"


@claim(
    "scale.md",
    "On the clock it is {} times in the fit of {} rows, {} times in scoring and {} times in "
    "measuring.",
)
def two_workers_on_the_clock() -> Iterator[str]:
    yield from times_as_fast("seconds")


@claim("scale.md", "These rows take {} bytes each in parquet, so a day is {} terabytes")
def stored() -> Iterator[str]:
    plan = read("cluster")["plan"]
    yield f"{plan['row_bytes']:.0f}"
    yield f"{plan['stored_bytes'] / 1e12:.2f}"


@claim(
    "scale.md",
    "with 32 workers a step is {} times as fast as one worker with the same batch, and with 1,024 "
    "{} times",
)
def steps() -> Iterator[str]:
    for row in read("cluster")["simulated"]:
        if row["workers"] in (32, 1024):
            yield f"{row['times_as_fast']:.1f}"


def _of_rows(rows: int) -> dict[str, Any]:
    (found,) = (r for r in read("scale")["results"] if r["rows"] == rows)
    return found


def _alone(verb: str) -> None:
    @claim("scale.md", f"| `{verb}` | " + " | ".join(["{}"] * 3) + " |")
    def of_one_machine() -> Iterator[str]:
        row = _of_rows(10_000_000)[verb]
        yield f"{row['rows_per_cpu_second']:,.0f}"
        yield f"{row['cpu_seconds']:.0f}"
        yield f"{row['peak_megabytes']}"


for _verb in ("fit", "evaluate", "score"):
    _alone(_verb)


def _wide(rows: int, objectives: int, values: int) -> dict[str, Any]:
    wanted = {"rows": rows, "objectives": objectives, "values": values}
    (found,) = (r for r in read("scale")["wide"] if wanted.items() <= r.items())
    return found["fit"]


@claim(
    "scale.md",
    "take {} processor seconds and {} MB to fit 200,000 rows, and\nfour of 20 values {} and {} MB",
)
def _many_values() -> Iterator[str]:
    for values in (1000, 20):
        yield f"{_wide(200_000, 5, values)['cpu_seconds']:.1f}"
        yield f"{_wide(200_000, 5, values)['peak_megabytes']}"


@claim("scale.md", "take {} processor seconds for 100,000 rows")
def _many_objectives() -> Iterator[str]:
    yield f"{_wide(100_000, 20, 20)['cpu_seconds']:.0f}"


@claim(
    "scale.md",
    "A log of 100,000,000 rows: `fit` {} processor seconds and {} MB, `evaluate` {} and {} MB, "
    "`score` {} and {} MB; rows per processor\nsecond are {}, {} and {} of those above.",
)
def _hundred_million() -> Iterator[str]:
    small, large = _of_rows(10_000_000), _of_rows(100_000_000)
    verbs = ("fit", "evaluate", "score")
    for verb in verbs:
        yield f"{large[verb]['cpu_seconds']:.0f}"
        yield f"{large[verb]['peak_megabytes']}"
    for verb in verbs:
        yield f"{large[verb]['rows_per_cpu_second'] / small[verb]['rows_per_cpu_second']:.2f}"
