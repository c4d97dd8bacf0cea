"""Network: goes on learning with the weights that it has, as the paper's service does.

After the first fit every batch is learned by some passes, twenty by default, over its rows and
earlier ones beside them: without these, a network forgets what the batch happens not to show. The
earlier rows are an even sample of all that were learned (`Replay`), bounded in number.

A loss of ranks leaves open where fused scores lie, and passes move them about. What is published
has the median and the width of the model before it, on the newest rows: the order of rows is the
network's, and whoever compares fused scores of two versions compares like with like.
"""

__all__ = ["NetworkContinuation"]

from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Self

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.data import Log
from harmonrank.data.rows.blocks import drawn_rows
from harmonrank.data.rows.kept_rows import concatenated, newest, read_rows, unlabelled
from harmonrank.fusion import load
from harmonrank.fusion.method import changed
from harmonrank.model.density.spread import Spread
from harmonrank.paper.methods.neural import NeuralMethod
from harmonrank.streaming.config import LearnerSettings
from harmonrank.streaming.learners.learner import RECENT, LearnerRecipe
from harmonrank.streaming.state.commits import Commits
from harmonrank.support.errors import DataError
from harmonrank.support.storage.decoding import decode

_MOST_COUNTED = 10**9 - 1  # of numpy's hypergeometric density
_MODEL, _REPLAY, _RECENT = "model", "replay.parquet", "recent.parquet"


@dataclass(frozen=True, eq=False)
class Replay:
    """A uniform sample without replacement of the rows seen so far.

    Attributes:
        most: How many rows are kept.
        seen: How many came in all.
        rows: The sample; all of them while they are few enough.
    """

    most: int
    seen: int = 0
    rows: Log | None = field(default=None, repr=False)

    def with_rows(self, rows: Log, *, seed: int) -> Self:
        """Return the sample after more rows came; the seed and what came before decide it.

        How many of the kept rows are to be new ones is drawn from the hypergeometric distribution,
        as when all rows were there and so many were drawn at once; which ones, evenly.
        """
        if self.rows is None:
            kept = [rows.take(drawn_rows(rows.rows, self.most, _generator(seed, 0)))]
        else:
            rng = _generator(seed, self.seen)
            total = min(self.most, self.seen + rows.rows)
            new = _share_of_new(rng, rows.rows, self.seen, total)
            old = drawn_rows(self.rows.rows, total - new, rng)
            kept = [self.rows.take(old), rows.take(drawn_rows(rows.rows, new, rng))]
        return replace(self, seen=self.seen + rows.rows, rows=concatenated(kept))

    def mixed(self, rows: Log, share: float, *, seed: int) -> Log:
        """Return rows with earlier ones before them, which are this share of the whole.

        Fewer, where the sample has not that many.
        """
        wanted = round(rows.rows * share / (1 - share))
        if self.rows is None or not wanted:
            return rows
        earlier = drawn_rows(self.rows.rows, wanted, _generator(seed, self.seen + 1))
        return concatenated([self.rows.take(earlier), rows])


def _generator(seed: int, seen: int) -> np.random.Generator:
    return np.random.default_rng([seed, seen, 0x4E7])


def _share_of_new(rng: np.random.Generator, new: int, seen: int, kept: int) -> int:
    if new + seen <= _MOST_COUNTED:
        return int(rng.hypergeometric(new, seen, kept))
    # Of so many rows a sample with replacement is the same.
    return min(int(rng.binomial(kept, new / (new + seen))), new)


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    replayed: Annotated[int, Meta(ge=0)]
    scale: tuple[Annotated[float, Meta(gt=0, le=1e12)], Annotated[float, Meta(ge=-1e12, le=1e12)]]


@dataclass(frozen=True, eq=False)
class NetworkContinuation:
    """A network that learns each batch beside a sample of what came before.

    Attributes:
        settings: How often it sees which rows.
        network: What goes on learning.
        replay: A sample of the rows that were learned.
        recent: The newest rows that were learned, from which drift counts.
        scale: Factor and shift from its fused score to the published one.
    """

    kind: ClassVar = "network"
    settings: LearnerSettings
    network: NeuralMethod
    replay: Replay
    recent: Log = field(repr=False)
    scale: tuple[float, float] = (1.0, 0.0)

    @classmethod
    def begun(
        cls, model: NeuralMethod, window: Log, settings: LearnerSettings, *, seed: int, **_: Any
    ) -> Self:
        """Return what goes on from a first fit on all rows so far."""
        replay = Replay(settings.replay_rows).with_rows(window, seed=seed)
        return cls(settings, model, replay, unlabelled(window.sampled(RECENT)))

    @cached_property
    def model(self) -> NeuralMethod:
        """What it would publish."""
        return changed(self.network, state=self.network.state.rescaled(*self.scale))

    def learned(self, rows: Log, *, seed: int, at: datetime) -> Self:  # noqa: ARG002
        """Return the network after its passes over these rows and earlier ones."""
        settings = self.settings
        mixed = self.replay.mixed(rows, settings.replay_share, seed=seed)
        newer = concatenated([self.recent, unlabelled(rows.sampled(RECENT))])
        recent = newest(newer, RECENT)
        network = self.network.updated(mixed, passes=settings.passes, seed=seed)
        return replace(
            self,
            network=changed(network, fitted=network.fitted.referred_to(recent.counted())),
            scale=_scale(network.score(recent), self.model.score(recent)),
            replay=self.replay.with_rows(rows, seed=seed),
            recent=recent,
        )

    def recalibrated(self, rows: Log) -> Self:
        """Return it with new scores brought to where its network learned the old ones."""
        before, network = self.network, self.network.recalibrated(rows, scores="all")
        replay, old = self.replay, self.replay.rows
        if old is not None:
            replay = replace(replay, rows=network.fitted.scores_of_now(old, before.fitted))
        recent = network.fitted.scores_of_now(self.recent, before.fitted)
        return replace(self, network=network, replay=replay, recent=recent)

    def facts(self) -> dict[str, Any]:
        """Return how many rows it keeps."""
        return {"replay_rows": 0 if self.replay.rows is None else self.replay.rows.rows}

    def record(self) -> Any:
        """Return how many rows the sample is of, and the scale."""
        return {"replayed": self.replay.seen, "scale": self.scale}

    def parts(self) -> dict[str, Any]:
        """Return the network and its rows."""
        return {_MODEL: self.network, _REPLAY: self.replay.rows, _RECENT: self.recent}

    @classmethod
    def restored(cls, record: Any, recipe: LearnerRecipe, commits: Commits) -> Self:
        """Return what a commit holds."""
        state, settings = decode(record, _Record, "The network of the state"), recipe.settings
        network = commits.read(_MODEL, load)
        if not isinstance(network, NeuralMethod):
            raise DataError(f"The state must hold a network. Got the method {network.name}.")
        rows = partial(read_rows, schema=recipe.schema)
        kept = commits.find(_REPLAY, partial(rows, most=settings.replay_rows))
        replay = Replay(settings.replay_rows, state.replayed, kept)
        recent = commits.read(_RECENT, partial(rows, most=RECENT))
        return cls(settings, network, replay, recent, state.scale)


def _scale(fused: np.ndarray, before: np.ndarray) -> tuple[float, float]:
    """Return factor and shift that give fused scores the median and the width of others."""
    now, then = (Spread.of(scores[:, None]) for scores in (fused, before))
    known = now.width[0] > 0 and then.width[0] > 0
    factor = float(np.clip(then.width[0] / now.width[0], 1e-6, 1e6)) if known else 1.0
    return factor, float(then.middle[0]) - factor * float(now.middle[0])
