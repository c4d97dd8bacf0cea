"""What the docs say of the prediction stage, of imported logs and of worlds."""

from collections.abc import Iterator
from statistics import mean
from typing import Any

from prose import claim, read, short, span

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


ONE = "one network of training rows"
MADE = {
    f"`mmoe`, {ONE}": "mmoe",
    "`mmoe`, mean of it and those of 5 folds": MEAN,
    "`mmoe`, mean of 3 of training and validation rows, as `predict score` gives it": FINAL,
    f"`ple`, {ONE}": "ple",
    f"`esmm`, {ONE}": "esmm",
    "LightGBM of training rows": "lightgbm",
    "LightGBM of training and validation rows": "lightgbm, train and valid",
}


@claim(
    "prediction.md",
    "\n".join(f"| {name} |" + " {} |" * 7 for name in ("true probabilities", *MADE)),
)
def areas() -> Iterator[str]:
    stored = read("prediction")
    found = stored["networks"] | stored["lightgbm"]
    for of_one in (stored["truth"], *(found[name]["auc"] for name in MADE.values())):
        values = [of_one[name] for name in OBJECTIVES]
        yield from map(short, (*values, mean(values)))


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
