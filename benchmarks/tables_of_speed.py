"""Tables of seconds, bytes and rows: what lab bench, scale.py, cluster.py and streams measured."""

import re
from collections.abc import Callable, Iterable
from statistics import mean
from typing import Any

from store import TABLES, markdown, read, short, span, table

OBJECTIVES = ("is_click", "long_view", "is_like", "is_comment", "is_follow", "is_forward")
MEAN, FINAL = "mmoe, mean of 6 validated", "mmoe, as predict score gives it"
MADE = {
    "`mmoe`, one network of training rows": "mmoe",
    "`mmoe`, mean of it and those of 5 folds": MEAN,
    "`mmoe`, mean of 3 of training and validation rows, as `predict score` gives it": FINAL,
    "`ple`, one network of training rows": "ple",
    "`esmm`, one network of training rows": "esmm",
    "LightGBM of training rows": "lightgbm",
    "LightGBM of training and validation rows": "lightgbm, train and valid",
}


def seconds(value: float) -> str:
    return f"{1e3 * value:#.3g} ms".replace(". ", " ") if value < 1 else f"{value:.2f} s"


def compared(cases: Iterable[dict[str, Any]]) -> str:
    """Cases of a bench: our time, and how many times it each peer takes."""
    rows = []
    for one in cases:
        ours = one["ours_seconds"]
        told = [f"{peer} {took / ours:.2f} ×" for peer, took in one["peers"].items()]
        told += [f"peak {one['memory_mb']:,.0f} MB"] if "memory_mb" in one else []
        note = ", ".join(told) or one.get("note", "")
        rate = f"{one['rows'] / ours:,.0f}"
        rows.append((one["name"], f"{one['rows']:,}", seconds(ours), rate, note))
    lines = markdown(["what", "rows", "ours", "rows/s", "peers take, or note"], rows)
    return lines.replace("--:|\n", "---|\n", 1)


def bench(pattern: str, file: str = "bench") -> str:
    """Cases of a bench whose names fit a pattern."""
    return compared(one for one in read(file)["results"] if re.fullmatch(pattern, one["name"]))


def of_group(group: str) -> Callable[[], str]:
    """Return how the table of a group of cases is made."""
    return lambda: compared(one for one in read("bench")["results"] if one["group"] == group)


TABLES |= {
    f"speed-{g}": of_group(g) for g in ("rank", "metrics", "train", "score", "growth", "serve")
}


@table
def speed_machine() -> str:
    facts = read("bench")["machine"]
    return markdown(["machine", "figure"], [(k, v) for k, v in facts.items() if k != "platform"])


@table
def speed_errors() -> str:
    rows = []
    for one in read("bench")["errors"]:
        errors = (one["ours_ranks"], one["rounding_ranks"], *one["peers"].values())
        rows.append((one["name"], f"{one['rows']:,}", *(f"{error:.2g}" for error in errors)))
    peers = read("bench")["errors"][0]["peers"]
    return markdown(["what", "rows", "ours", "rounding of the result alone", *peers], rows)


@table
def bench_soft_rank() -> str:
    return bench("(soft_rank|argsort) float32.*")


@table
def bench_steps() -> str:
    return bench("training step, .*|score, .*|score a request, .*|(first score|cold).*")


@table
def simd() -> str:
    """What explicit SIMD gains over plain loops, where it is kept and where it was not."""
    stored = read("simd")
    rows = [(one["loop"], f"{one['ratio']:.1f} ×", "kept") for one in stored["results"]]
    rows += [(one["loop"], f"{one['ratio']:.1f} ×", "plain now") for one in stored["replaced"]]
    return markdown(["loop", "plain takes", "explicit SIMD"], rows)


@table
def bench_serve() -> str:
    return bench("serve.*", "serve")


@table
def soak() -> str:
    stored = read("soak")
    names = ("minutes", "rate", "answered", "failed", "worker_growth_mb", "first_process_growth_mb")
    return markdown(["what", "figure"], [(n.replace("_", " "), f"{stored[n]:,}") for n in names])


@table
def scale() -> str:
    rows = [
        (f"`{verb}`", f"{one['rows']:,}", *used(one[verb]))
        for verb in ("fit", "evaluate", "score")
        for one in read("scale")["results"]
        if verb in one
    ]
    return markdown(["", "rows", *USED], rows)


USED = ("seconds", "rows per second", "processor seconds", "peak MB")


def used(run: dict[str, Any]) -> Iterable[str]:
    """Return the figures of a process under `USED`."""
    yield f"{run['seconds']:.1f}"
    yield f"{run['rows_per_second']:,.0f}"
    yield f"{run['cpu_seconds']:.0f}"
    yield f"{run['peak_megabytes']:,}"


@table
def scale_file() -> str:
    (one,) = read("scale")["files"]
    rows = [
        (words, *(f"{one[n][part]:.1f}" for part in ("seconds", "cpu_seconds")),
         one[n]["peak_megabytes"])
        for n, words in (("harmonrank", "`harmonrank score`"), ("polars", "polars, in memory"),
                         ("polars_streaming", "polars, streaming"))
    ]  # fmt: skip
    return markdown(["", "seconds", "processor seconds", "peak MB"], rows)


@table
def scale_wide() -> str:
    rows = [
        (f"{one['rows']:,}", one["objectives"], f"{one['values']:,}", *used(one["fit"]))
        for one in read("scale")["wide"]
    ]
    return markdown(["rows", "objectives", "values of each feature", *USED], rows, 0)


@table
def cluster() -> str:
    rows = []
    for one in read("cluster")["results"]:
        times = [
            f"{one[n]:.1f}" for n in ("seconds", "driver_seconds", "worker_seconds", "path_seconds")
        ]
        peaks = [f"{one[f'{n}_peak_mb']:,.0f}" for n in ("driver", "worker")]
        sent = [f"{one[f'{n}_bytes'] / 1e6:.1f}" for n in ("sent", "received")]
        rows.append([one["verb"], f"{one['rows']:,}", one["workers"], *times, *peaks, *sent])
    head = [
        "clock",
        "its own processor time",
        "all workers'",
        "path",
        "its own memory",
        "a worker's",
    ]
    return markdown(["verb", "rows", "workers", *head, "sent", "received"], rows)


@table
def cluster_plan() -> str:
    rows = [
        (f"{verb} a day", f"{one['core_hours']:.0f}", f"{one['minutes']:.2f}",
         f"{one['dollars']:.2f}", f"{one['received_bytes'] / 1e9:.1f}")
        for verb, one in read("cluster")["plan"]["verbs"].items()
    ]  # fmt: skip
    head = ["core hours", "minutes on these machines", "dollars", "GB to one process"]
    return markdown(["verb", *head], rows)


@table
def freshness() -> str:
    stored = read("freshness")
    base, hours = stored["before_swap_regret"], sorted(map(int, stored["swap_regret"]))
    gain = stored["last_day"]["gain"]
    stale = [stored["swap_regret_without"][str(h)] - base for h in hours]
    facts = {
        "ahead of a model frozen after the first day, last day before the swap":
            f"{short(gain['mean'])} ± {short(2.069 * gain['error'])}",  # t of 23 degrees
        "what the swap costs a model that stays": short(mean(stale)),
        "what is left of it after two hours":
            short(max(stored["swap_regret"][str(hours[2])] - base, 0.0)),
        "least share recovered from then on":
            f"{100 * min(stored['recovered'][str(h)] for h in hours[2:]):.0f} %",
        "versions published": stored["published"],
        "versions refused": len(stored["refused"]),
        "worst version against the one before it": short(stored["least_gain_of_a_version"]),
    }  # fmt: skip
    return markdown(["AUC-sum of the stream", "figure"], facts.items())


@table
def stream_speed() -> str:
    join, rows = read("streaming_join"), []
    clocks = ("second", "cpu_second")
    rows.append(["join: events", *(f"{join[f'events_per_{c}']:,.0f}" for c in clocks)])
    for method in ("network", "default"):
        stored = read(f"streaming_{method}")
        rates = (f"{stored[f'rows_per_{c}']:,.0f}" for c in clocks)
        rows.append([f"join and `{stored['method']}`: labelled rows", *rates])
    memory = f"{join['memory_slope_mb_per_million_events']:.2f}"
    rows.append([f"join: MB more per million events, over {join['events']:,}", memory, ""])
    return markdown(["what", "per second", "per second of processor time"], rows)


@table
def predicted() -> str:
    stored = read("prediction")
    parts = stored["networks"] | stored["lightgbm"]
    areas = {"true probabilities": stored["truth"]} | {n: parts[k]["auc"] for n, k in MADE.items()}
    rows = [
        (name, *(short(v) for v in (*(area[o] for o in OBJECTIVES), mean(area.values()))))
        for name, area in areas.items()
    ]
    return markdown(["", *OBJECTIVES, "mean"], rows)


@table
def predicted_gaps() -> str:
    final, folds = (read("prediction")["networks"][name] for name in (FINAL, MEAN))
    rows = [["noise of the first, 95 %", *(span(final["gap_ci"][o], ".4f") for o in OBJECTIVES)]]
    for words, figures, kind in (
        ("by the test labels", final, "gap"),
        ("exact, true probabilities as labels", final, "exact_gap"),
        ("exact, without validation rows (mean of 6)", folds, "exact_gap"),
        ("calibration error", final, "ece"),
        ("calibration error, without validation rows", folds, "ece"),
    ):
        rows.append([words, *(short(figures[kind][o]) for o in OBJECTIVES)])
    return markdown(["", *OBJECTIVES], [rows[1], rows[0], *rows[2:]])


@table
def real_slice() -> str:
    rows = [
        (f"`{one['name']}`", f"{one['auc_sum']:.3f}") for one in read("pipeline_slice")["methods"]
    ]
    return markdown(["method", "AUC-sum"], rows)


@table
def large_log() -> str:
    stored = read("large_log")
    rows = [(step, *used(stored[step])) for step in ("simulate", "import", "pipeline")]
    return markdown(["of 20M rows", *USED], rows)
