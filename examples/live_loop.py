"""The closed loop on one machine, through the real parts, each a process of its own.

A simulated video feed (`live_platform.py`) asks `harmonrank serve` to rank the candidates of every
request, shows them in that order, and writes what was shown and what users did to a folder of
events. `harmonrank stream` reads the folder and publishes versions to a registry, from which the
service moves to each new one. Half-way two upstream models are replaced. Takes some minutes:

    python examples/live_loop.py

Hours are simulated ones in the recent past, and each takes some seconds. At the end of a quarter
the clock waits until the stream has done what is due by then: an hour of a real platform would have
given it the time. Until there is a version, candidates are shown in random order.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import datetime, timedelta
from functools import partial
from http.client import HTTPConnection, RemoteDisconnected
from pathlib import Path
from typing import Any

import numpy as np
from live_platform import HOUR, STEPS, Platform, Step

from harmonrank.support.storage import check_output, remove, write_json

WINDOW, LATENESS = timedelta(minutes=30), timedelta(minutes=1)
HARMONRANK = (sys.executable, "-m", "harmonrank")
PATIENCE = 300.0  # seconds until a part that does not get on is given up
NUMBERS, PAGE = "loop.json", "stream.html"


class Parts:
    """The processes beside the platform; use `closing`, so that they end whatever happens."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, verb: str, *options: str | Path) -> None:
        """Start a verb of harmonrank; what it says goes to a file."""
        with (self._folder / f"{verb}.log").open("wb") as log:
            # In a session of its own: Ctrl-C is for the platform alone, which then ends it.
            self._running[verb] = subprocess.Popen(
                [*HARMONRANK, verb, *options], stdout=log, stderr=log, start_new_session=True
            )

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Wait until something is so, as long as all processes run."""
        end = time.monotonic() + PATIENCE
        while not is_so():
            for verb, process in self._running.items():
                if process.poll() is not None:
                    raise RuntimeError(f"`{verb}` ended too early: {self._said(verb)}")
            if time.monotonic() > end:
                raise RuntimeError(f"Waited {PATIENCE:g} s in vain for {what}.")
            time.sleep(0.05)

    def stop(self) -> None:
        """End all processes as an operator would, and make sure that they ended well."""
        for verb, process in self._running.items():
            process.send_signal(signal.SIGTERM)
            if process.wait(PATIENCE) != 0:
                raise RuntimeError(f"`{verb}` ended with {process.returncode}: {self._said(verb)}")

    def close(self) -> None:
        """End what still runs, in the end by force."""
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _said(self, verb: str) -> str:
        return (self._folder / f"{verb}.log").read_text(encoding="utf-8")[-2000:]


class Service:
    """A running `harmonrank serve`, asked over one connection."""

    def __init__(self, address: str, columns: tuple[str, ...]) -> None:
        self._connection, self._columns = HTTPConnection(address.partition("://")[2]), columns

    def rank(
        self, scores: np.ndarray, context: dict[str, np.ndarray]
    ) -> tuple[np.ndarray, list[str]]:
        """Rank each request in a call of its own, as they would come."""
        fused, versions = np.empty(scores.shape[:2]), {}
        for i, candidates in enumerate(scores):
            body = {
                "scores": dict(zip(self._columns, candidates.T.tolist(), strict=True)),
                "context": {name: int(values[i]) for name, values in context.items()},
                "k": None,
            }
            answer = self._ask("POST", "/v1/rank", json.dumps(body))
            versions[answer["version"]] = True
            for one in answer["ranked"]:
                fused[i, one["index"]] = one["fused"]
        return fused, list(versions)

    def answers_as(self, lines: "StreamLines") -> bool:
        """Tell whether the version that was published last answers."""
        return self._ask("GET", "/v1/model")["version"] == str(lines.version)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _ask(self, method: str, path: str, body: str | None = None) -> Any:
        for _ in range(2):
            try:
                self._connection.request(method, path, body, {"content-type": "application/json"})
                answer = self._connection.getresponse()
                break
            except (RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # The service ends a connection that was idle for some seconds; open another one.
                self._connection.close()
        else:
            raise RuntimeError(f"The service does not answer {path}.")
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path} was answered by {answer.status}: {content.decode()}")
        return json.loads(content)


class StreamLines:
    """The lines of `harmonrank stream --json`, which say what it has done."""

    def __init__(self, path: Path, start: datetime) -> None:
        self.path, self._start, self._read = path, start, 0
        self._done = {"interval": start, "batch": start}
        self.version: int | None = None  # the one published last

    def are_up_to(self, newest: datetime) -> bool:
        """Tell whether all is done that is due when the newest event is of this time."""
        raw = self.path.read_bytes()[self._read :] if self.path.exists() else b""
        whole = raw[: raw.rfind(b"\n") + 1]  # the last line may be half written
        self._read += len(whole)
        for event in map(json.loads, whole.splitlines()):
            if event["event"] in self._done:
                self._done[event["event"]] = datetime.fromisoformat(event["end"])
                made = event["version"]
                if made is not None and made["refused"] is None:
                    self.version = made["version"]
        # Exposures are complete at the end of an interval, labels when their window has passed.
        waits = {"interval": LATENESS, "batch": LATENESS + WINDOW}
        return all(
            self._start + (newest - wait - self._start) // HOUR * HOUR <= self._done[kind]
            for kind, wait in waits.items()
        )


def run(folder: Path, given: argparse.Namespace) -> Iterator[Step]:
    """Yield what was served, a quarter of an hour at a time."""
    events, registry = folder / "events", folder / "registry"
    platform = Platform(events, hours=given.hours, swap=given.swap, seed=given.seed)
    lines, service = StreamLines(folder / "stream.jsonl", platform.start), None
    with ExitStack() as stack:
        parts = stack.enter_context(closing(Parts(folder)))
        wait = ("--window", _seconds(WINDOW), "--lateness", _seconds(LATENESS))
        places = ("--source", events, "--state", folder / "feed", "--registry", registry)
        parts.start("stream", *places, *wait, "--json", lines.path)
        for number in range(given.hours * STEPS):
            begun = time.monotonic()
            rank = platform.random_order if service is None else service.rank
            yield platform.step(number / STEPS, given.requests // STEPS, rank)
            parts.wait("the stream", lambda: lines.are_up_to(platform.newest))
            if service is None and lines.version is not None:
                told = folder / "serve.json"  # the address, as any free port is taken
                parts.start(
                    "serve", registry, "--port", "0", "--recalibrate", "off", "--json", told
                )
                parts.wait("the service", told.exists)
                address = json.loads(told.read_bytes())["address"]
                service = Service(address, platform.schema.score_columns)
                stack.enter_context(closing(service))
            if service is not None:
                # It looks twice a second whether there is another version.
                parts.wait("the new version", partial(service.answers_as, lines))
            time.sleep(max(0.0, begun + given.seconds_per_hour / STEPS - time.monotonic()))
        parts.stop()


def _seconds(wait: timedelta) -> str:
    return f"{wait.total_seconds():g}s"


def hour_line(steps: list[Step]) -> str:
    """Return what an hour was like."""
    versions = ", ".join(dict.fromkeys(name for step in steps for name in step.versions))
    means = [np.mean([step.feedback[name] for step in steps]) for name in steps[0].feedback]
    served, best = (np.mean([getattr(s, part) for s in steps]) for part in ("served", "ceiling"))
    numbers = " ".join(f"{value:9.3f}" for value in (*means, served, best, best - served))
    return f"{steps[0].hour:4g}  {versions:10} {numbers}"


def verdict(steps: list[Step], swap: float) -> str:
    """Return how much of the best possible the swap cost, and how soon it was back."""
    regret = {step.hour - swap: step.ceiling - step.served for step in steps}
    before = [value for hour, value in regret.items() if -1 <= hour < 0]
    first = [value for hour, value in regret.items() if 0 <= hour < 1]
    if not before or not first:
        return "There was no hour before the swap to compare with."
    normal, lost = np.mean(before), np.mean(first) - np.mean(before)
    back = [h for h, value in regret.items() if h > 0 and value <= normal + 0.1 * lost]
    soon = (
        f"90 % of it was back {back[0]:g} hours later" if back else "90 % of it did not come back"
    )
    return f"The swap in hour {swap:g} cost {lost:.3f} of the AUC-sum; {soon}."


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="The closed loop, each part a real process.")
    parser.add_argument("--hours", type=int, default=10, help="simulated hours")
    parser.add_argument("--requests", type=int, default=1_200, help="per hour")
    parser.add_argument("--swap", type=float, default=5, help="hour of the upstream swap")
    parser.add_argument("--seconds-per-hour", type=float, default=8, help="at least")
    parser.add_argument("--seed", type=int, default=0, help="draws other users and candidates")
    parser.add_argument("-o", "--output", type=Path, default=Path("live"), help="folder")
    given = parser.parse_args()
    if not (0 <= given.swap < given.hours and given.requests >= STEPS):
        parser.error(f"--swap must lie within --hours, and --requests be {STEPS} or more.")
    return given


def main() -> None:
    """Run the loop, print what each hour was like, and write the page of the stream."""
    given = options()
    # So that all processes end with this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = check_output(given.output, overwrite=True, holds=NUMBERS)
    remove(folder)
    folder.mkdir(parents=True)
    write_json(folder / NUMBERS, {})
    steps: list[Step] = []
    with closing(run(folder, given)) as served:
        for step in served:
            if not steps:
                names = (*step.feedback, "AUC-sum", "ceiling", "regret")
                print("hour  version    " + " ".join(f"{name:>9}" for name in names))
            steps.append(step)
            if len(steps) % STEPS == 0:
                print(hour_line(steps[-STEPS:]), flush=True)
    said = verdict(steps, given.swap)
    write_json(folder / NUMBERS, {"verdict": said, "steps": [vars(step) for step in steps]})
    page = folder / PAGE
    subprocess.run([*HARMONRANK, "report", folder / "feed", "-o", page, "--quiet"], check=True)
    print(f"{said}\nThe page of the stream: {page}")


if __name__ == "__main__":
    main()
