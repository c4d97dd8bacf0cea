"""How fast a stream is.

    python benchmarks/streaming.py network --json benchmarks/results/streaming_network.json

`network`: joined events per second and labelled rows per second of the paper's network, which makes
20 passes over each hourly batch beside as many earlier rows, on the world elive. The events are in
memory before the clock starts; the first fit, which opens the network, is timed on its own. Beside
seconds there is processor time, which a busy machine does not stretch as much.

    python benchmarks/streaming.py join --json benchmarks/results/streaming_join.json

`join`: an hour of a world's exposures is drawn once, with its feedback, which also comes in later
hours. Hour after hour it is written again to a folder of parquet files, later and with other
requests, then read, joined and committed as a stream does, and removed. Writing is not timed;
reading, checking and joining are, and commits by themselves. After each hour the resident memory of
the process is written down. Its slope is that of a straight line through all hours but the first
quarter, in which windows fill and the allocator settles.

    python benchmarks/streaming.py replay --hours 48 --json benchmarks/results/streaming_replay.json

`replay`: the same hourly batches, each of one hour of the day, are learned with more and fewer
earlier rows beside them; exact regret of each batch before it is learned, over the second half.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from streaming_join import measure_join
from streaming_replay import measure_replay

from harmonrank.data import read_log
from harmonrank.streaming.join.join import Batch, Join
from harmonrank.streaming.join.windows import Windows
from harmonrank.streaming.learners.learner import LearnerSettings, StreamLearner, new_learner
from harmonrank.worlds import world
from harmonrank_lab.bench import machine
from harmonrank_lab.worlds.stream import SimulatedStream


class Stopwatch:
    """Adds up the seconds, and the processor's, of named pieces of work."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu_seconds: dict[str, float] = {}

    def __call__(self, name: str, work: Callable[[], Any]) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - wall
        self.cpu_seconds[name] = self.cpu_seconds.get(name, 0.0) + time.process_time() - cpu
        return result


def network(options: argparse.Namespace) -> dict[str, Any]:
    """Measure join and network."""
    platform = SimulatedStream(world("elive"), rows=options.rows, hours=options.hours)
    chunks, schema = list(platform.chunks()), platform.schema
    settings = LearnerSettings(passes=options.passes, replay_share=options.share)
    join, learner = Join(schema, Windows()), new_learner(options.method, {}, schema, settings)
    watch, learned = Stopwatch(), 0

    def learn(learner: StreamLearner, batch: Batch) -> StreamLearner:
        rows = read_log(batch.rows, schema)
        return learner.learned(rows, seed=learned, at=batch.end)

    for chunk in chunks:
        watch("join", partial(join.add, chunk))
        for step in watch("join", join.ready):
            if isinstance(step, Batch):
                name = "first fit" if learner.model is None else "learn"
                learner = watch(name, partial(learn, learner, step))
                learned += step.rows.height if name == "learn" else 0
    events = sum(chunk.height for chunk in chunks)
    return {
        "method": options.method,
        "passes": options.passes,
        "replay_share": options.share,
        "events": events,
        "batch_rows": options.rows // int(options.hours),
        "learned_rows": learned,
        "seconds": watch.seconds,
        "cpu_seconds": watch.cpu_seconds,
        **rates(watch, events, options.rows, learned),
    }


def rates(watch: Stopwatch, events: int, rows: int, learned: int) -> dict[str, float]:
    """Return events and labelled rows per second, by both clocks; not all rows were learned."""
    found = {}
    for clock, spent in (("second", watch.seconds), ("cpu_second", watch.cpu_seconds)):
        found[f"events_joined_per_{clock}"] = events / spent["join"]
        found[f"rows_learned_per_{clock}"] = learned / spent["learn"]
        found[f"rows_per_{clock}"] = 1 / (spent["join"] / rows + spent["learn"] / learned)
    return found


PARTS = {"network": network, "join": measure_join, "replay": measure_replay}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--hours", type=float, default=10)
    parser.add_argument("--method", default="harmonrank-paper")
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--batch-rows", type=int, default=20_000, help="of replay")
    parser.add_argument("--events", type=int, default=50_000_000, help="of join")
    parser.add_argument("--hour-rows", type=int, default=200_000, help="exposures of an hour")
    parser.add_argument("--most", type=int, default=200_000, help="events of a chunk")
    parser.add_argument("--disorder", type=float, default=0.02, help="share of late events")
    parser.add_argument("--place", type=Path, help="where temporary files go")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    command = " ".join(["python", *sys.argv])
    result = {"command": command, "machine": machine(), **PARTS[options.part](options)}
    text = json.dumps(result, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
