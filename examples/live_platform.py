"""The platform of `live_loop.py`: a simulated video feed that logs what it shows as events."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from harmonrank.metrics import auc, best_score
from harmonrank.streaming import open_sink
from harmonrank.worlds import world, world_schema
from harmonrank_lab.worlds import Swap, World, draw_candidates, examination_curve

HOUR = timedelta(hours=1)
STEPS = 4  # of an hour
CANDIDATES = 20
_USERS = 5_000
_DELAY = 0.05  # hours until feedback comes, on average
_CURVE = examination_curve(1.0, CANDIDATES)

Rank = Callable[[np.ndarray, dict[str, np.ndarray]], tuple[np.ndarray, list[str]]]
"""Turns scores (requests, candidates, objectives) and the context of each request into fused
scores (requests, candidates) and the names of those who answered."""


@dataclass(frozen=True)
class Step:
    """What was served in a quarter of an hour.

    Attributes:
        hour: When it began, in hours since the start.
        versions: That answered, in order.
        feedback: Events per request, by objective.
        served: Exact AUC-sum of the served scores.
        ceiling: The best possible one on these candidates.
    """

    hour: float
    versions: list[str]
    feedback: dict[str, float]
    served: float
    ceiling: float


@dataclass(frozen=True)
class Requests:
    """The requests of a step; the last dimensions are candidates and objectives.

    Attributes:
        time: In hours since the start, ascending.
        user: Who asked.
        context: One array per feature.
        scores: What upstream models say.
        chance: How likely each feedback is if the candidate is looked at.
        truth: The same given all that a fusion sees, (rows, objectives).
    """

    time: np.ndarray
    user: np.ndarray
    context: dict[str, np.ndarray]
    scores: np.ndarray
    chance: np.ndarray
    truth: np.ndarray


class Platform:
    """Users who come, candidates for them, and the log of what was shown and answered.

    All candidates are shown, the best on top, and place k is looked at with chance 1/log₂(1 + k).
    So every row is logged whatever the ranking, with its place, and what users do not do further
    down is no proof that they do not want it: the schema says how often each place is looked at.
    """

    def __init__(self, folder: Path, *, hours: int, swap: float, seed: int) -> None:
        self._world, self._hours = _feed(swap / hours), hours
        self._rng = np.random.default_rng(seed)
        self.start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - hours * HOUR
        self.newest = self.start  # the time of the newest event
        self._users = {
            name: self._rng.choice(len(share), _USERS, p=share)
            for name, share in self._world.categories.items()
        }
        self.schema = replace(
            world_schema(self._world), time="time", position="position", examination=_CURVE
        )
        self._sink = open_sink(str(folder))
        (folder / "schema.toml").write_text(self.schema.to_toml(), encoding="utf-8")
        self._later = pl.DataFrame()  # feedback that is still to come
        self._served = 0

    def random_order(
        self, scores: np.ndarray, context: dict[str, np.ndarray]
    ) -> tuple[np.ndarray, list[str]]:
        """Rank at random, which is all that can be done before there is a version."""
        del context
        return self._rng.random(scores.shape[:2]), ["random"]

    def step(self, hour: float, requests: int, rank: Rank) -> Step:
        """Serve the requests of a quarter of an hour, and log what came of them."""
        asked = self._draw(hour, requests)
        fused, versions = rank(asked.scores, asked.context)
        place = 1 + np.argsort(np.argsort(-fused, axis=1, kind="stable"), axis=1)
        seen = self._rng.random(place.shape) < np.array(list(_CURVE.values()))[place - 1]
        came = (self._rng.random(asked.chance.shape) < asked.chance) & seen[..., None]
        self._log(asked, place, came, until=self.start + (hour + 1 / STEPS) * HOUR)
        served, best = (auc(s, asked.truth).sum() for s in (fused.ravel(), best_score(asked.truth)))
        feedback = dict(zip(self.schema.names, came.sum((0, 1)) / requests, strict=True))
        return Step(hour, versions, feedback, served, best)

    def _draw(self, hour: float, requests: int) -> Requests:
        time = hour + np.sort(self._rng.random(requests)) / STEPS
        user = self._rng.integers(_USERS, size=requests)
        context = {name: values[user] for name, values in self._users.items()}
        # A world's time runs from 0 to 1.
        drawn = draw_candidates(self._world, context, time / self._hours, CANDIDATES, self._rng)
        truth = self._world.posterior(
            drawn.scores.reshape(-1, len(self.schema.names)).astype(np.float64),
            {name: _each(values) for name, values in context.items()},
            _each(time / self._hours),
        )
        return Requests(time, user, context, drawn.scores, drawn.chance, truth)

    def _log(
        self, asked: Requests, place: np.ndarray, came: np.ndarray, *, until: datetime
    ) -> None:
        """Write what happened until now, in order of time; later feedback has to wait."""
        n, M = len(asked.truth), len(self.schema.names)
        columns = {
            "event": np.full(n, "exposure"),
            "request": (self._served + _each(np.arange(len(place)))).astype(str),
            "item": (np.arange(n) % CANDIDATES).astype(str),
            "time": self._times(_each(asked.time)),
            "user": _each(asked.user).astype(str),
            "position": place.ravel(),
            **{name: _each(values) for name, values in asked.context.items()},
            **dict(zip(self.schema.score_columns, asked.scores.reshape(n, M).T, strict=True)),
            **dict(zip(self.schema.truth.values(), asked.truth.T, strict=True)),
        }
        self._served += len(place)
        row, objective = np.nonzero(came.reshape(n, M))
        delay = self._rng.exponential(_DELAY, len(row))
        shown = pl.DataFrame(columns)
        given = shown.select("request", "item", "user")[row].with_columns(
            pl.lit("feedback").alias("event"),
            pl.Series("time", self._times(_each(asked.time)[row] + delay)),
            pl.Series("objective", np.array(self.schema.names)[objective]),
        )
        events = pl.concat([self._later, shown, given], how="diagonal").sort("time")
        happened = events.filter(pl.col("time") < until)
        self._sink.write(happened)
        self._later, self.newest = events.filter(pl.col("time") >= until), happened["time"].max()

    def _times(self, hours: np.ndarray) -> pl.Series:
        micros = self.start.timestamp() * 1e6 + hours * 3.6e9
        return pl.Series(micros.astype(np.int64)).cast(pl.Datetime("us", "UTC"))


def _feed(swap: float) -> World:
    """Return the world in which two upstream models are replaced at a time between 0 and 1."""
    feed = world("qkvideo")
    feed = feed.drifting(swap=Swap(swap, ("like",), a=0.4, b=2.0))
    return feed.drifting(swap=Swap(swap, ("share",), a=2.2, b=1.0))


def _each(values: np.ndarray) -> np.ndarray:
    """Return a value of each request for each of its candidates."""
    return np.repeat(values, CANDIDATES)
