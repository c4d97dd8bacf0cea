"""The figures within the sentences of a page, computed from stored results.

A claim names a page, a sentence with a hole `{}` for each figure, and a function that returns what
belongs there. `results_page.py` fills the holes in place; a test holds every page to it. So a
sentence stays where it is read, and a result that was measured again changes it.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
HOLE = r"[-+−]?[\d,]*\.?\d+"
MEASURED = re.compile(
    r"(?<![\w.,`-])[\d,]*\.?\d+ (?:ms|ns|µs|s|MB|GB|times|×|rows per second|rows/s)\b"
)
CODE = re.compile(r"^```.*?^```|^ {4}[^\n]*", re.DOTALL | re.MULTILINE)


def read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


class Claim(NamedTuple):
    """A sentence of a page with holes, and the function that fills them."""

    page: str
    sentence: str
    figures: Callable[[], Iterator[str]]


CLAIMS: list[Claim] = []


def claim(page: str, sentence: str) -> Callable[..., Any]:
    """Declare what fills a sentence of a page."""

    def declare(figures: Callable[[], Iterator[str]]) -> Callable[[], Iterator[str]]:
        CLAIMS.append(Claim(f"docs/{page}", sentence, figures))
        return figures

    return declare


def filled(text: str, sentence: str, figures: list[str]) -> str:
    """Return a text in which one sentence has these figures.

    >>> filled("It took\\n3.1 s.", "It took {} s", ["2.9"])
    'It took\\n2.9 s.'
    """
    holes = sentence.count("{}")
    if holes != len(figures):
        raise ValueError(f"{len(figures)} figures for {holes} holes: {sentence}")
    found = list(pattern_of(sentence).finditer(text))
    if len(found) != 1:
        raise ValueError(f"found {len(found)} times: {sentence}")
    around = found[0].groups()
    new = "".join(a + b for a, b in zip(around, [*figures, ""], strict=True))
    return text[: found[0].start()] + new + text[found[0].end() :]


def pattern_of(sentence: str) -> re.Pattern[str]:
    """Return what finds a sentence whatever its figures and line ends, a group around each hole."""
    parts = [r"\s+".join(map(re.escape, re.split(r"\s+", p))) for p in sentence.split("{}")]
    return re.compile(HOLE.join(f"({part})" for part in parts))


def unclaimed(page: Path) -> list[str]:
    """Return the times, sizes and ratios in the sentences of a page that no claim computes."""
    text = page.read_text(encoding="utf-8")
    claimed = [pattern_of(c.sentence).search(text) for c in CLAIMS if ROOT / c.page == page]
    spans = [match.span() for match in claimed if match]
    spans += [match.span() for match in CODE.finditer(text)]
    found = [m for m in MEASURED.finditer(text) if not any(a <= m.start() < b for a, b in spans)]
    return [match[0] for match in found]


def pages() -> dict[Path, str]:
    """Return every page that has claims, with its figures as stored."""
    texts: dict[Path, str] = {}
    for page, sentence, figures in CLAIMS:
        path = ROOT / page
        text = texts.get(path) or path.read_text(encoding="utf-8")
        texts[path] = filled(text, sentence, list(figures()))
    return texts


def short(value: float, digits: int = 4) -> str:
    """Return a number without its leading zero."""
    return f"{value:.{digits}f}".replace("0.", ".", 1)


def span(values: list[float], form: str) -> Iterator[str]:
    yield format(min(values), form)
    yield format(max(values), form)


# --- speed, from `harmonrank bench`


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
    "| JSON, 1,000 candidates, 99th percentile at 200 requests/s | {} ms | {} s (it reached {} "
    "requests/s) |",
)
def percentile() -> Iterator[str]:
    found = served("JSON, p99 at 200 requests/s")
    yield f"{1e3 * found['ours_seconds']:.1f}"
    yield f"{found['peers'][PLAIN]:.2f}"
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


@claim("serving.md", "Throughput as JSON is {} × that of the plain server")
def throughput() -> Iterator[str]:
    yield f"{times_as_fast(served('JSON, per request'), PLAIN):.1f}"


def candidates(kind: str) -> Iterator[str]:
    seconds = served(f"{kind}, per request", 10_000)["ours_seconds"]
    yield from (f"{1e3 * seconds:.2f}", f"{10_000 / seconds / 1e6:.1f}")


@claim("serving.md", "| binary tensors, 10,000 candidates | {} ms, {}M candidates/s | |")
def binary() -> Iterator[str]:
    yield from candidates("binary tensors")


@claim("serving.md", "| Arrow, 10,000 candidates | {} ms, {}M candidates/s | |")
def arrow() -> Iterator[str]:
    yield from candidates("Arrow")


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


# --- networks


@claim("network.md", "the spread of the fused score goes to {} in `elive`")
def spread() -> Iterator[str]:
    found = [r for r in read("schedule")["results"] if r["world"] == "elive"]
    yield f"{max(r['health']['fused'] for r in found if r['schedule'] == 'constant'):.0f}"


def tuned(method: str, **options: Any) -> Any:
    """Return the fits of a method whose options differ from the search's start in these alone."""
    tuning = read("tuning")
    wanted = tuning["start"] | options
    (found,) = (v for k, v in tuning["fits"][method].items() if json.loads(k) == wanted)
    return found


@claim("network.md", "30 without interpolation gave {} to {} times the regret in `conflict`")
def buckets() -> Iterator[str]:
    def regret(**options: Any) -> float:
        found = tuned("harmonrank-paper", learning_rate=0.03, **options)["conflict"]
        return mean(fit["regret"] for fit in found.values())

    others: list[dict[str, Any]] = [
        {"buckets": 16},
        {"scale": "quantile"},
        {"buckets": 30, "interpolate": False},
    ]
    yield from span([regret(**other) / regret() for other in others], ".1f")


@claim("network.md", "makes a path dead in {} to {} of {} fits, so the default has none.")
def dead() -> Iterator[str]:
    methods = ("harmonrank-paper", "pairwise-logistic", "aucm")
    fits = [
        [bool(fit["dead"]) for redraws in worlds.values() for fit in redraws.values()]
        for worlds in (tuned(m, learning_rate=0.03, weight_decay=0.1) for m in methods)
    ]
    yield from span([sum(part) for part in fits], "d")
    yield str(len(fits[0]))


@claim("network.md", "worse by more than .003 than something else that it saw in {} of {} cases")
def kept_behind() -> Iterator[str]:
    best = read("tuning")["best"].values()
    yield str(sum(len(found["behind"]) for found in best))
    yield str(sum(len(found["regret"]) for found in best))


# --- the online experiment


def lifts(part: str) -> dict[tuple[str, str], float]:
    online = read("online-elive")
    found = online["analysis"]["lifts"] if part == "measured" else online["exact"]
    return {(one["arm"], one["outcome"]): one["lift"] for one in found}


@claim("online.md", "seed 0, {} requests of {} users in four arms over five days, retrained")
def traffic() -> Iterator[str]:
    online = read("online-elive")
    users = sum(online["analysis"]["sample_ratio"]["users"].values())
    yield from (f"{online['requests']:,}", f"{users:,}")


@claim("online.md", "retrained hourly; {} s on two cores")
def online_seconds() -> Iterator[str]:
    yield f"{read('online-elive')['seconds']:.0f}"


@claim("online.md", "comments, follows and likes, by {} to {} %;")
def online_gains() -> Iterator[str]:
    found = lifts("measured")
    yield from span([found["ours", o] for o in ("buy", "comment", "follow", "like")], ".1f")


@claim(
    "online.md",
    "Sample ratio: p = {}. A/A: p < .05 in buy {} %, comment {} %, follow {} %, like {} %, "
    "long_view {} % of {} halvings.",
)
def online_checks() -> Iterator[str]:
    analysis = read("online-elive")["analysis"]
    yield f"{analysis['sample_ratio']['p']:.2f}"
    yield from (f"{100 * share:.1f}" for share in analysis["aa"]["below"].values())
    yield str(analysis["aa"]["splits"])


@claim("online.md", "{} of the {} measured intervals miss the exact lift")
def online_coverage() -> Iterator[str]:
    exact = lifts("exact")
    found = [one for one in read("online-elive")["analysis"]["lifts"]
             if (one["arm"], one["outcome"]) in exact]  # fmt: skip
    missed = [
        one for one in found if not one["low"] <= exact[one["arm"], one["outcome"]] <= one["high"]
    ]
    yield from (str(len(missed)), str(len(found)))


# --- the prediction stage

OBJECTIVES = ("is_click", "long_view", "is_like", "is_comment", "is_follow", "is_forward")
MEAN, FINAL = "mmoe, mean of 6 validated", "mmoe, as predict score gives it"


def network(name: str) -> Any:
    return read("prediction")["networks"][name]


@claim("prediction.md", "| by the test labels | {} | {} | {} | {} | {} | {} |")
def gaps() -> Iterator[str]:
    yield from (short(network(FINAL)["gap"][name]) for name in OBJECTIVES)


@claim(
    "prediction.md",
    "| their noise, 95 % | {}–{} | {}–{} | {}–{} | {}–{} | {}–{} | {}–{} |",
)
def gap_noise() -> Iterator[str]:
    for name in OBJECTIVES:
        yield from map(short, network(FINAL)["gap_ci"][name])


@claim("prediction.md", "| exact, true probabilities as labels | {} | {} | {} | {} | {} | {} |")
def exact_gaps() -> Iterator[str]:
    yield from (short(network(FINAL)["exact_gap"][name]) for name in OBJECTIVES)


@claim(
    "prediction.md",
    "| exact, without validation rows (mean of 6) | {} | {} | {} | {} | {} | {} |",
)
def training_gaps() -> Iterator[str]:
    yield from (short(network(MEAN)["exact_gap"][name]) for name in OBJECTIVES)


@claim("prediction.md", "and by the test labels for comment ({})")
def comment_gap() -> Iterator[str]:
    yield short(network(MEAN)["gap"]["is_comment"])


@claim("prediction.md", "{} for click ({}), {} for long view ({}), below .001 for the others")
def calibration() -> Iterator[str]:
    for name in ("is_click", "long_view"):
        yield from (short(network(part)["ece"][name]) for part in (FINAL, MEAN))


@claim("prediction.md", "MMoE trained at {} rows per second on two cores")
def training_speed() -> Iterator[str]:
    rows = read("prediction_speed")["networks"]["mmoe"]["rows_per_second"]
    yield f"{round(rows, -3):,.0f}"


@claim("prediction.md", "import {} MB, the whole pipeline, with three networks of training and "
       "validation rows, {} MB at its peak.")  # fmt: skip
def large_memory() -> Iterator[str]:
    found = read("large_log")
    yield from (f"{found[part]['peak_megabytes']:,}" for part in ("import", "pipeline"))


@claim("prediction.md", "{} training and {} test rows, of which {} have a follow.")
def slice_rows() -> Iterator[str]:
    found = read("pipeline_slice")
    yield from (f"{found['rows'][part]:,}" for part in ("train", "test"))
    yield str(found["prediction"]["is_follow"]["positives"])


@claim(
    "prediction.md",
    "`prevalence-weights` reached an AUC-sum of {} and `harmonrank` {}, which the test labels "
    "cannot tell apart; `closed-form` reached {}, `logistic` {}.",
)
def slice_sums() -> Iterator[str]:
    sums = {one["name"]: one["auc_sum"] for one in read("pipeline_slice")["methods"]}
    for name in ("prevalence-weights", "harmonrank", "closed-form", "logistic"):
        yield f"{sums[name]:.3f}"


# --- logs and worlds


@claim("logs.md", "| import of 20M rows (200,000 users, 50,000 items, 1.5 GB of csv) | {}K | {} | "
       "{} MB |")  # fmt: skip
def import_speed() -> Iterator[str]:
    yield from log_speed("import")


@claim("logs.md", "| simulate of those 20M rows | {}K | {} | {} MB |")
def simulate_speed() -> Iterator[str]:
    yield from log_speed("simulate")


def log_speed(step: str) -> Iterator[str]:
    found = read("large_log")[step]
    yield f"{found['rows_per_second'] / 1e3:.0f}"
    yield f"{found['cpu_seconds']:.0f}"
    yield str(found["peak_megabytes"])


def drawn(name: str) -> Iterator[str]:
    rows = [r for r in read("worlds")["results"] if r["world"] == name]
    (preset,) = (r for r in rows if r["redraw"] is None)
    yield f"{preset['ceiling']:.4f}"
    if "three" in preset:
        yield f"{preset['three']['ceiling']:.4f}"
    yield from span([r["ceiling"] for r in rows if r["redraw"] is not None], ".4f")
    yield from (f"{preset['regret'][n]:.4f}" for n in ("calibrated-own-score", "logistic-on-all"))


@claim("worlds.md", "gender 3 | {} | {} (buy, follow, long_view) | {}–{} | {} | {} |")
def elive() -> Iterator[str]:
    yield from drawn("elive")


@claim("worlds.md", "gender 3 | {} | {} (click, like, follow) | {}–{} | {} | {} |")
def qkvideo() -> Iterator[str]:
    yield from drawn("qkvideo")


@claim("worlds.md", "region 6 | {} | – | {}–{} | {} | {} |")
def conflict() -> Iterator[str]:
    yield from drawn("conflict")


@claim("worlds.md", "took {}–{} s of processor time and {}–{} s on the clock of two cores")
def drawing() -> Iterator[str]:
    rows = [r for r in read("worlds")["results"] if r["rows"] == 2_000_000]
    yield from span([r["sample_processor_seconds"] for r in rows], ".1f")
    yield from span([r["sample_seconds"] for r in rows], ".1f")
