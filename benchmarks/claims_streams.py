"""What pages say of streams."""

from collections.abc import Iterator

from prose import claim, read, short

_T = 2.069  # 97.5 % of Student's t with 23 degrees of freedom


@claim(
    "streaming.md",
    "ahead of the one that was frozen after the first day by {} (95 % interval {} to {})",
)
def fresh() -> Iterator[str]:
    gain = read("freshness")["last_day"]["gain"]
    margin = _T * gain["error"]
    yield from (
        short(value) for value in (gain["mean"], gain["mean"] - margin, gain["mean"] + margin)
    )


@claim(
    "streaming.md",
    "The swap costs {} of AUC-sum. The first hour with the new scores is complete after an hour, "
    "and the version recalibrated on it is published then; the loss that is left after 2 hours is "
    "{}, and {} % or more is recovered from then on.",
)
def swapped() -> Iterator[str]:
    found = read("freshness")
    base, hours = found["before_swap_regret"], sorted(map(int, found["swap_regret"]))
    worst = [found["swap_regret_without"][str(h)] - base for h in hours]
    yield short(sum(worst) / len(worst))
    yield short(max(found["swap_regret"][str(hours[2])] - base, 0.0))
    yield str(int(100 * min(found["recovered"][str(h)] for h in hours[2:])))


@claim(
    "streaming.md",
    "{} versions were published and {} refused. The worst of them was behind the one before it by "
    "{} of",
)
def versions() -> Iterator[str]:
    found = read("freshness")
    yield str(found["published"])
    yield str(len(found["refused"]))
    yield short(-found["least_gain_of_a_version"])


@claim(
    "streaming.md",
    "On {} cores that had other work too, reading, checking and joining the parquet files of a "
    "folder went at {} thousand events per second, {} thousand per second of processor time; over "
    "{} million events memory had a slope of {} MB per million",
)
def joining() -> Iterator[str]:
    found = read("streaming_join")
    yield str(found["machine"]["cores"])
    yield f"{found['events_per_second'] / 1e3:,.0f}"
    yield f"{found['events_per_cpu_second'] / 1e3:,.0f}"
    yield f"{found['events'] / 1e6:.0f}"
    yield f"{found['memory_slope_mb_per_million_events']:.2f}"


@claim(
    "streaming.md",
    "On {} quiet cores, joining and learning `elive` by the paper's network "
    "took {} thousand labelled rows per second, {} thousand per second of processor time",
)
def network_speed() -> Iterator[str]:
    found = read("streaming_network")
    yield str(found["machine"]["cores"])
    yield f"{found['rows_per_second'] / 1e3:,.0f}"
    yield f"{found['rows_per_cpu_second'] / 1e3:,.0f}"


@claim(
    "streaming.md",
    "before it is learned is {} without earlier rows, {} where they are a quarter, {} where they "
    "are half and {} where they are three quarters",
)
def replay_regrets() -> Iterator[str]:
    found = read("streaming_replay")["regret"]
    yield from (f"{found[share]['mean']:.4f}" for share in ("0.0", "0.25", "0.5", "0.75"))


@claim("streaming.md", "join and default together take {} labelled rows/s in hourly batches")
def default_rate() -> Iterator[str]:
    yield f"{read('streaming_default')['rows_per_second']:,.0f}"
