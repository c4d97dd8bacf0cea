"""What the docs say of speed, from `harmonrank lab bench`, serving_stack.py and soak.py."""

import re
from collections.abc import Iterator
from typing import Any

from prose import claim, read, span


def bench(name: str, rows: int, file: str = "bench") -> Any:
    (found,) = (r for r in read(file)["results"] if (r["name"], r["rows"]) == (name, rows))
    return found


def times_as_fast(part: Any, peer: str) -> float:
    return float(part["peers"][peer] / part["ours_seconds"])


@claim("kernels.md", "a training step of 10,240 rows is {} times as fast as PyTorch's eager mode")
def step() -> Iterator[str]:
    yield f"{times_as_fast(bench('training step, rank loss', 10_240), 'torch-eager'):.0f}"


@claim(
    "kernels.md",
    "With five objectives, {} curves and {} surfaces (world `tails`) a million rows take {} ms on "
    "{} cores; linear heads alone take {}.",
)
def residual_scoring() -> Iterator[str]:
    found = bench("score, harmonrank with residual", 1_000_000)
    yield from re.findall(r"(\d+) (?:curves|surfaces)", found["note"])
    yield f"{1e3 * found['ours_seconds']:.0f}"
    yield str(read("bench")["machine"]["cores"])
    yield f"{1e3 * bench('score, harmonrank', 1_000_000)['ours_seconds']:.0f}"


@claim("default-method.md", "The linear heads of five objectives and 200,000 rows take {} s")
def heads_fit() -> Iterator[str]:
    found = bench("fit of the default's linear heads", 200_000)
    yield f"{found['ours_seconds']:.2f}"


def soft_ranks(rows: int) -> list[Any]:
    return [r for r in read("bench")["results"] if re.match("soft_rank .* strength", r["name"])
            and r["rows"] == rows]  # fmt: skip


@claim(
    "soft-ranks.md",
    "Forward and backward, `l2`, are {} to {} times as fast as torchsort at 10,240 rows, and {} to "
    "{} times at 1,024,000",
)
def soft_rank_speed() -> Iterator[str]:
    for rows in (10_240, 1_024_000):
        yield from span([times_as_fast(r, "torchsort") for r in soft_ranks(rows)], ".1f")


@claim("soft-ranks.md", "torchsort, which adds up in float32, is off by {} ranks at a million rows")
def soft_rank_error() -> Iterator[str]:
    (found,) = (e for e in read("bench")["errors"] if e["name"] == "error float32 strength 10")
    yield f"{found['peers']['torchsort']:.0f}"


@claim(
    "soft-ranks.md",
    "At 10,240 float32 values it takes {} ms (`numpy.argsort`: {} ms stable, {} ms not), at "
    "1,024,000 it takes {} ms ({} ms and {} ms).",
)
def argsort_speed() -> Iterator[str]:
    for rows, form in ((10_240, ".2f"), (1_024_000, ".0f")):
        found = bench("argsort float32", rows)
        peers = (found["peers"]["numpy stable"], found["peers"]["numpy unstable"])
        yield from (format(1e3 * s, form) for s in (found["ours_seconds"], *peers))


def served(name: str, rows: int = 1_000) -> Any:
    return bench(f"serve {name}", rows, "serve")


PLAIN = "FastAPI + torch-eager"


@claim(
    "serving.md",
    "| JSON, 1,000 candidates, 99th percentile at 200 requests/s | {} ms | {} ms (it reached {} "
    "requests/s) |",
)
def percentile() -> Iterator[str]:
    found = served("JSON, p99 at 200 requests/s")
    yield f"{1e3 * found['ours_seconds']:.1f}"
    yield f"{1e3 * found['peers'][PLAIN]:.1f}"
    yield re.findall(r"(\d+) requests/s", found["note"])[1]


@claim(
    "serving.md",
    "| JSON, 1,000 candidates, time per request at full load | {} ms, 99th percentile {} ms | {} "
    "ms ({} ×), {} ms |",
)
def full_load() -> Iterator[str]:
    found = served("JSON, per request")
    ours, plain = re.findall(r"([\d.]+) ms", found["note"])
    yield from (f"{1e3 * found['ours_seconds']:.2f}", ours, f"{1e3 * found['peers'][PLAIN]:.2f}")
    yield from (f"{times_as_fast(found, PLAIN):.1f}", plain)


@claim(
    "serving.md",
    "Throughput as JSON is {} × that of the plain server, with {} % of its 99th percentile.",
)
def throughput() -> Iterator[str]:
    found = served("JSON, per request")
    ours, plain = map(float, re.findall(r"([\d.]+) ms", found["note"]))
    yield from (f"{times_as_fast(found, PLAIN):.1f}", f"{100 * ours / plain:.0f}")


@claim("serving.md", "| from the command to the first answer | {} s; `harmonrank-paper` {} s | |")
def first_answer() -> Iterator[str]:
    for method in ("", ", harmonrank-paper"):
        found = bench(f"serve, start to first answer{method}", 1_000, "serve")
        yield f"{found['ours_seconds']:.2f}"


def candidates(kind: str) -> Iterator[str]:
    seconds = served(f"{kind}, per request", 10_000)["ours_seconds"]
    yield from (f"{1e3 * seconds:.2f}", f"{10_000 / seconds / 1e6:.1f}")


@claim("serving.md", "| binary tensors, 10,000 candidates | {} ms, {}M candidates/s | |")
def binary() -> Iterator[str]:
    yield from candidates("binary tensors")


@claim(
    "serving.md",
    "In {} minutes it had {} answers, and {} requests failed. From the second quarter of the hour "
    "to the last one, the worker's memory grew by {} MB, and that of the service's first process, "
    "which measures drift, by {} MB.",
)
def soak() -> Iterator[str]:
    found = read("soak")
    yield from (f"{found['minutes']:.0f}", f"{found['answered']:,}", str(found["failed"]))
    yield f"{found['worker_growth_mb']:.1f}"
    yield f"{found['first_process_growth_mb']:.1f}"


@claim(
    "serving.md",
    "Decoding takes orjson {}, msgspec {} and msgspec with types {}; the checked types are worth "
    "the difference, and msgspec is a dependency already. Python's json takes {}.",
)
def decoding() -> Iterator[str]:
    found = read("serving_stack")["json"]
    for name in ("orjson", "msgspec", "msgspec typed", "json"):
        yield f"{found[name]['decode_cpu_ms']:.2f}"


@claim("serving.md", "The machine was busy with other work (load {} on {} cores), so only")
def serving_load() -> Iterator[str]:
    machine = read("serving_stack")["machine"]
    yield from (f"{machine['load']:.0f}", str(machine["cores"]))


STACKS = {
    "uvicorn, httptools, uvloop": "uvicorn-httptools-uvloop",
    "uvicorn, h11, asyncio": "uvicorn-h11",
    "granian, ASGI": "granian-asgi",
    "granian, RSGI": "granian-rsgi",
}


@claim("serving.md", "\n".join(f"| {name} | {{}} | {{}} |" for name in STACKS))
def stacks() -> Iterator[str]:
    servers = read("serving_stack")["servers"]
    for name in STACKS.values():
        for kind in ("json", "binary"):
            yield f"{servers[name][kind]['cpu_ms_per_request']:.2f}"


@claim(
    "kernels.md",
    "such a first score takes {} s (`harmonrank`) and {} s (`harmonrank-paper`), with kept kernels "
    "{} s and {} s (`harmonrank lab bench score`).",
)
def first_score() -> Iterator[str]:
    for what in ("first score ever", "cold start"):
        for method in ("harmonrank", "harmonrank-paper"):
            yield f"{bench(f'{what}, {method}', 1_000)['ours_seconds']:.1f}"
