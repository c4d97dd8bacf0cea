"""Arm: a model that ranks, the log of what its users did, and how it learns from that log."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import Log, Schema, hash_shares
from harmonrank.fusion import Method, method_class
from harmonrank.metrics import auc
from harmonrank.paper import NeuralMethod
from harmonrank.support import DataError
from harmonrank.worlds import world_schema
from harmonrank_lab.experiments.online._traffic import Hour, OnlineConfig, Traffic
from harmonrank_lab.worlds import POSITION, World

_HELD_OUT = 0.1

RANDOMISED = "randomised"
"""The column that is 1 in requests that were shown in random order."""

_ORDER = 7


@dataclass(frozen=True, eq=False)
class Impressions:
    """Items that were looked at, as an arm learns from them.

    Attributes:
        hour: When they were shown.
        labels: (rows, objectives), what had come when the wait was over.
    """

    hour: int
    scores: np.ndarray
    context: dict[str, np.ndarray]
    labels: np.ndarray
    request: np.ndarray


@dataclass(frozen=True, eq=False)
class Answers:
    """What users did with what was shown to them, (requests, places) and objectives."""

    order: np.ndarray
    seen: np.ndarray
    came: np.ndarray


def serve(hour: Hour, fused: np.ndarray, curve: np.ndarray) -> Answers:
    """Show the best items of every request; items that are looked at are answered.

    Args:
        hour: The requests.
        fused: (requests, items), higher is shown first.
        curve: The chance that each place is looked at.
    """
    order = np.argsort(-fused, axis=1, kind="stable")[:, : len(curve)]
    at = np.arange(len(order))[:, None], order
    seen = hour.glance < curve
    return Answers(order, seen, (hour.draw[at] < hour.chance[at]) & seen[..., None])


def rows_of(
    hour: Hour, answers: Answers, mine: np.ndarray, delay: np.ndarray, wait: int
) -> Impressions:
    """Return the items that some requests' users looked at, with the labels that came in time.

    Given that an answer comes, draw/chance is uniform again: it also decides the delay.
    """
    request, place = np.nonzero(answers.seen & mine[:, None])
    item = answers.order[request, place]
    share = hour.draw[request, item] / hour.chance[request, item]
    late = -delay * np.log(np.clip(share, 1e-300, 1.0)) > wait
    return Impressions(
        hour.number,
        hour.scores[request, item],
        {name: values[request] for name, values in hour.context.items()},
        (answers.came[request, place] & ~late).astype(np.uint8),
        request + (hour.number << 32),
    )


def matured(rows: Sequence[Impressions], now: int, wait: int) -> list[Impressions]:
    """Return the hours whose labels have had time to come; those before the experiment have.

    A label that may yet come is not taken for a negative: its row has to wait.
    """
    return [part for part in rows if part.hour < 0 or part.hour + 1 + wait <= now]


def newest(rows: Sequence[Impressions], schema: Schema, most: int) -> Log:
    """Return the newest rows as a method learns from them, at most so many."""
    kept: list[Impressions] = []
    for part in reversed(rows):
        if sum(len(k.labels) for k in kept) >= most:
            break
        kept.insert(0, part)

    def joined(parts: Iterable[np.ndarray]) -> np.ndarray:
        return np.concatenate(list(parts))[-most:]

    context = {name: joined(part.context[name] for part in kept) for name in schema.context}
    scores, labels = joined(part.scores for part in kept), joined(part.labels for part in kept)
    request = joined(part.request for part in kept)
    return Log(schema, scores, pl.DataFrame(context), labels, request)


class Arm:
    """A method that learns from its own log alone.

    A network goes on from its present weights by twenty passes over the window, and the result is
    served only if it ranks a tenth of the requests, which updates never learn from, no worse than
    before. Any other method is refitted on the window.
    """

    def __init__(
        self,
        method: str,
        schema: Schema,
        warmup: Sequence[Impressions],
        *,
        window_rows: int,
        seed: int,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._build = partial(method_class(method), **(options or {}))
        self._schema, self._seed = schema, seed
        self._window_rows, self._rows = window_rows, list(warmup)
        window = newest(self._rows, schema, window_rows)
        self._model: Method = self._build().fit(window, schema, seed=seed)

    def score(self, hour: Hour) -> np.ndarray:
        """Return the fused scores of an hour's items, (requests, items)."""
        return _scores(hour, self._schema, self._model.score)

    def remember(self, rows: Impressions) -> None:
        """Add an hour to the log."""
        self._rows.append(rows)

    def learn(self, now: int, wait: int) -> bool:
        """Learn again from the newest matured rows; return False if they lack some class."""
        log = newest(matured(self._rows, now, wait), self._schema, self._window_rows)
        try:
            log.require_both_classes("matured")
        except DataError:
            return False
        if isinstance(self._model, NeuralMethod):
            self._update(self._model, log, now)
        else:
            self._model = self._build().fit(log, self._schema, seed=self._seed)
        return True

    def _update(self, model: NeuralMethod, log: Log, now: int) -> None:
        assert log.request is not None
        held = hash_shares(log.request, "held out") < _HELD_OUT
        held[0] = True  # never none
        test = log.take(np.flatnonzero(held))
        newer = model.updated(log.take(np.flatnonzero(~held)), seed=self._seed + 1 + now)
        before, after = (
            np.nansum(self._schema.weight_vector * auc(m.score(test), test.known_labels()))
            for m in (model, newer)
        )
        if after >= before:
            self._model = newer


class FixedArm(Arm):
    """A saved model, perhaps at an operating point, that ranks as it is and learns nothing."""

    def __init__(self, model: Method, schema: Schema) -> None:
        self._model, self._schema = model, schema

    def remember(self, rows: Impressions) -> None:
        """Forget what its users did."""

    def learn(self, now: int, wait: int) -> bool:  # noqa: ARG002
        """Stay as it is."""
        return False


def shown_requests(world: World, config: OnlineConfig, seed: int) -> Hour:
    """Draw an hour of requests with their candidates, and how each would be answered."""
    return next(Traffic(world, config, seed).hours())


def candidate_scores(hour: Hour, world: World, score: Callable[[Log], np.ndarray]) -> np.ndarray:
    """Return what a model makes of all candidates, (requests, items)."""
    known = world_schema(world)
    return _scores(hour, Schema(known.objectives, known.context), score)


def _scores(hour: Hour, schema: Schema, score: Callable[[Log], np.ndarray]) -> np.ndarray:
    requests, items, M = hour.scores.shape
    context = pl.DataFrame({name: np.repeat(v, items) for name, v in hour.context.items()})
    return score(Log(schema, hour.scores.reshape(-1, M), context)).reshape(requests, items)


def shown_log(
    hour: Hour, world: World, fused: np.ndarray, config: OnlineConfig, *, share: float, seed: int
) -> pl.DataFrame:
    """Return a row per candidate: scores, context, its place if it was shown, and its feedback.

    Args:
        hour: The requests.
        world: Where they come from.
        fused: (requests, items), what ranks them.
        config: How many are shown, and how far they are looked at.
        share: Of the requests, so many are shown in random order.
        seed: Decides which, and in which order.
    """
    requests, items, M = hour.scores.shape
    rng = np.random.default_rng([seed, _ORDER])
    drawn = rng.random((requests, 1))[:, 0] < share
    fused = np.where(drawn[:, None], rng.random(fused.shape), fused)
    answers = serve(hour, fused, config.examination())
    at = np.arange(requests)[:, None], answers.order
    position = np.full((requests, items), -1)
    position[at] = np.arange(1, answers.order.shape[1] + 1)
    labels = np.zeros((requests, items, M), np.uint8)
    labels[at] = answers.came
    columns: dict[str, np.ndarray] = {"request_id": np.repeat(np.arange(requests), items)}
    columns |= {name: np.repeat(values, items) for name, values in hour.context.items()}
    for m, (label, score) in enumerate(world_schema(world).objectives.items()):
        columns[score], columns[label] = hour.scores[..., m].ravel(), labels[..., m].ravel()
    columns |= {POSITION: position.ravel(), RANDOMISED: np.repeat(drawn, items)}
    frame = pl.DataFrame(columns)
    return frame.with_columns(pl.when(pl.col(POSITION) > 0).then(POSITION).alias(POSITION))


def true_values(hour: Hour, fused: np.ndarray, config: OnlineConfig) -> np.ndarray:
    """Return the expected events of each objective per request, (M,), which no log tells."""
    order = np.argsort(-fused, axis=1, kind="stable")[:, : config.top_k]
    chance = hour.chance[np.arange(len(order))[:, None], order]
    return np.asarray(np.einsum("k,rkm->m", config.examination(), chance) / len(order))
