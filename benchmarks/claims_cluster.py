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
        yield f"{found['seconds']:.1f}"
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


def gain(verb: str, rows: int) -> str:
    one, two = (growth(verb, rows, n)["seconds"] for n in WORKERS)
    return f"{one / two:.2f}"


@claim(
    "scale.md",
    "On the clock two workers are {} times as fast as one in the fit of 10,000,000 rows, {} times "
    "in scoring and {} times in measuring;\nof 100,000,000 rows it is {}, {} and {} times.",
)
def two_workers() -> Iterator[str]:
    for rows in (10_000_000, 100_000_000):
        yield from (gain(verb, rows) for verb in VERBS)


@claim(
    "scale.md",
    "In the larger fit the process that was started is at work for {} s and receives {} GB of sums",
)
def middle() -> Iterator[str]:
    two = growth("fit", 100_000_000, 2)
    yield f"{two['driver_seconds']:.0f}"
    yield f"{two['received_bytes'] / 1e9:.2f}"


@claim("scale.md", "one worker takes {} s of processor time to score 10,000,000 rows in {} s")
def scoring_beside() -> Iterator[str]:
    one = growth("score", 10_000_000, 1)
    yield from (f"{one['worker_seconds']:.1f}", f"{one['seconds']:.1f}")


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


def _alone(verb: str, rows: int) -> None:
    @claim("scale.md", f"| `{verb}` | {rows:,} | " + " | ".join(["{}"] * 4) + " |")
    def of_one_machine() -> Iterator[str]:
        row = _of_rows(rows)[verb]
        yield f"{row['seconds']:.0f}"
        yield f"{row['rows_per_second']:,.0f}"
        yield f"{row['cpu_seconds']:.0f}"
        yield f"{row['peak_megabytes']}"


for _verb in ("fit", "evaluate", "score"):
    for _rows in (10_000_000, 100_000_000):
        _alone(_verb, _rows)


@claim(
    "scale.md",
    "ten times the rows are fitted at {} of the rows per second, measured at {} and scored at {}.",
)
def _hundred_million() -> Iterator[str]:
    small, large = _of_rows(10_000_000), _of_rows(100_000_000)
    for verb in ("fit", "evaluate", "score"):
        yield f"{large[verb]['rows_per_second'] / small[verb]['rows_per_second']:.2f}"


@claim(
    "scale.md",
    "`harmonrank score` takes {} s, of which a second is its\nstart; polars {} s to read and write "
    "the same columns in memory, {} s streaming. So it is {} and {} times as fast as",
)
def _beside_polars() -> Iterator[str]:
    (found,) = read("scale")["files"]
    ours, held, streamed = (
        found[who]["seconds"] for who in ("harmonrank", "polars", "polars_streaming")
    )
    yield from (f"{seconds:.1f}" for seconds in (ours, held, streamed))
    yield from (f"{seconds / ours:.2f}" for seconds in (held, streamed))


def _wide(rows: int, objectives: int, values: int) -> dict[str, Any]:
    wanted = {"rows": rows, "objectives": objectives, "values": values}
    (found,) = (r for r in read("scale")["wide"] if wanted.items() <= r.items())
    return found["fit"]


@claim(
    "scale.md", "take {} seconds and {} MB to fit 200,000 rows, and\nfour of 20 values {} and {} MB"
)
def _many_values() -> Iterator[str]:
    for values in (1000, 20):
        yield f"{_wide(200_000, 5, values)['seconds']:.1f}"
        yield f"{_wide(200_000, 5, values)['peak_megabytes']}"


@claim("scale.md", "take {} seconds and {} MB for 1,000,000 rows")
def _many_objectives() -> Iterator[str]:
    found = _wide(1_000_000, 20, 20)
    yield from (f"{found['seconds']:.0f}", f"{found['peak_megabytes']}")
