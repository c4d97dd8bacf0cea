"""What a stream is worth: fresh against frozen under drift, and after an upstream swap.

    python benchmarks/freshness.py --json benchmarks/results/freshness.json

A world drifts over some days, and two of its upstream models are replaced at a given hour. The
real stream learns its events, joined after an hour's wait, and publishes through the guardrails of
a registry. Every hour is then scored by the version that was current when it began and, for
comparison, by the one that was current after the first day; results are exact AUC-sums by true
probabilities.
"""

import argparse
import json
import tempfile
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import Log, read_log
from harmonrank.metrics import auc, best_score
from harmonrank.registry import Registry
from harmonrank.streaming.config import LoopConfig, StreamConfig
from harmonrank.streaming.config import LearnerSettings
from harmonrank.streaming.loop_events import BatchLearned, IntervalCompleted
from harmonrank.streaming.sources.source import open_sink
from harmonrank.streaming.stream import stream
from harmonrank.worlds import Swap, world
from harmonrank_lab.worlds.stream import SimulatedStream

HOUR = timedelta(hours=1)
SWAPPED = {"a": 1.5, "b": -1.0}


def drifting(name: str, hours: int, drift: float, swap: int) -> Any:
    place = world(name)
    change = Swap(swap / hours, place.objectives[1:3], SWAPPED["a"], SWAPPED["b"], 1.0)
    return place.drifting(mu_amplitude=drift, swap=change)


def written(events: SimulatedStream, folder: Path) -> pl.DataFrame:
    """Write all events, and return the exposures."""
    sink, shown = open_sink(str(folder)), []
    for chunk in events.chunks():
        sink.write(chunk)
        shown.append(chunk.filter(pl.col("event") == "exposure"))
    sink.close()
    return pl.concat(shown)


def versions(happened: list[Any], config: StreamConfig) -> list[tuple[Any, int, bool]]:
    """Return when each published version became current, in the time of the events."""
    late, wait = timedelta(seconds=config.lateness), timedelta(seconds=config.window)
    found = []
    for event in happened:
        made = event.version
        if made is not None and made.refused is None:
            ready = event.end + late + (wait if isinstance(event, BatchLearned) else 0 * wait)
            found.append((ready, made.version, made.recalibrated))
    return found


def exact(model: Any, log: Log) -> float:
    return float(auc(model.score(log), log.truth).sum())


def mean_and_error(values: list[float]) -> dict[str, float]:
    return {
        "mean": float(np.mean(values)),
        "error": float(np.std(values, ddof=1) / len(values) ** 0.5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--world", default="elive")
    parser.add_argument("--hours", type=int, default=72)
    parser.add_argument("--rows", type=int, default=25_000, help="exposures an hour")
    parser.add_argument("--drift", type=float, default=0.5)
    parser.add_argument("--swap", type=int, default=66, help="the hour of the upstream swap")
    parser.add_argument("--frozen", type=int, default=24, help="the hour whose version is frozen")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half-life", default="auto")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    place = drifting(given.world, given.hours, given.drift, given.swap)
    events = SimulatedStream(place, given.rows * given.hours, given.hours, given.seed)
    life = given.half_life if given.half_life in ("auto", "never") else float(given.half_life)
    config = StreamConfig(learner=LearnerSettings(half_life=life))
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        shown = written(events, at / "events")
        happened = []
        for event in stream(
            str(at / "events"), events.schema, config, at / "state",
            registry=at / "registry", loop=LoopConfig(once=True),
        ):  # fmt: skip
            if isinstance(event, BatchLearned | IntervalCompleted):
                happened.append(event)
                told = event.version or getattr(event, "held", None)
                print(
                    type(event).__name__,
                    f"{event.start:%d %H}h",
                    told,
                    getattr(event, "learner", ""),
                    flush=True,
                )
        result = measured(
            events, shown, versions(happened, config), Registry(at / "registry"), given
        )
    refused = [e.version.refused for e in happened if e.version and e.version.refused]
    result |= {
        "published": sum(1 for e in happened if e.version) - len(refused),
        "refused": refused,
    }
    result["half_lives"] = [
        e.learner.get("half_life_hours") for e in happened if isinstance(e, BatchLearned)
    ]
    command = "python benchmarks/freshness.py"
    text = json.dumps(
        {
            "command": command,
            "settings": {k: v for k, v in vars(given).items() if k != "json"},
            **result,
        },
        indent=1,
    )
    print(
        json.dumps({k: v for k, v in result.items() if k not in ("hours", "half_lives")}, indent=1)
    )
    if given.json is not None:
        given.json.write_text(text + "\n")


def measured(
    events: SimulatedStream, shown: pl.DataFrame, made: list[Any], registry: Registry, given: Any
) -> dict[str, Any]:
    models: dict[int, Any] = {}

    def current(when: Any) -> int | None:
        found = [number for ready, number, _ in made if ready <= when]
        return found[-1] if found else None

    def model(number: int) -> Any:
        if number not in models:
            models[number] = registry.load(number)
        return models[number]

    schema = replace(events.schema, request=None)

    def log_of(hour: int) -> Log:
        start = events.start + hour * HOUR
        part = shown.filter((pl.col("time") >= start) & (pl.col("time") < start + HOUR))
        return read_log(part.with_columns(pl.lit(0).alias(n) for n in schema.names), schema)

    frozen = current(events.start + given.frozen * HOUR)
    assert frozen is not None, "no version was published before the frozen one"
    rows, worse = [], []
    for hour in range(given.hours):
        start = events.start + hour * HOUR
        number = current(start)
        if number is None:
            continue
        log = log_of(hour)
        best = float(auc(best_score(log.truth), log.truth).sum())
        row = {
            "hour": hour,
            "version": number,
            "ceiling": best,
            "streamed": exact(model(number), log),
        }
        row["frozen"] = exact(model(frozen), log)
        # Versions that became current since the last hour, each beside the one before it.
        for (_, before, _), (ready, new, recalibrated) in pairwise(made):
            if start - HOUR < ready <= start:
                gain = exact(model(new), log) - exact(model(before), log)
                worse.append({"version": new, "recalibrated": recalibrated, "gain": gain})
        rows.append(row)
    # The last day before the swap, which would make anything frozen look bad.
    day = [r for r in rows if given.swap - 24 <= r["hour"] < given.swap]
    calm = [r["ceiling"] - r["streamed"] for r in rows if given.swap - 6 <= r["hour"] < given.swap]
    lost = {r["hour"]: r["ceiling"] - r["streamed"] for r in rows}
    before = model(current(events.start + given.swap * HOUR))
    stale = {
        hour: next(r["ceiling"] for r in rows if r["hour"] == hour) - exact(before, log_of(hour))
        for hour in range(given.swap, min(given.swap + 6, given.hours))
    }
    base = float(np.mean(calm))
    recovered = {h: 1 - (lost[h] - base) / (stale[h] - base) for h in stale if stale[h] - base > 0}
    return {
        "last_day": {
            "streamed": mean_and_error([r["streamed"] for r in day]),
            "frozen": mean_and_error([r["frozen"] for r in day]),
            "gain": mean_and_error([r["streamed"] - r["frozen"] for r in day]),
        },
        "before_swap_regret": base,
        "swap_regret_without": stale,
        "swap_regret": {h: lost[h] for h in stale},
        "recovered": recovered,
        "least_gain_of_a_version": min((w["gain"] for w in worse), default=None),
        "gains": worse,
        "hours": rows,
    }


if __name__ == "__main__":
    main()
