"""The world `trained`: scores by networks that learned from a log, and labels redrawn."""

__all__ = ["RedrawnTruth", "train_world"]

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harmonrank.metrics import logit, sigmoid
from harmonrank.worlds import Sample, block_generator, draw_requests, sample_blocks
from harmonrank_lab.upstream import Predictor, PredictorConfig, fit_predictor
from harmonrank_lab.upstream.logs import ImportedLog, find_kuairand, import_log
from harmonrank_lab.upstream.scoring import score_frame
from harmonrank_lab.worlds.raw import KuaiRandWorld
from harmonrank_lab.worlds.raw_simulation import simulate_log

Floats = NDArray[np.float64]

_UNITS, _STEPS, _RIDGE = 128, 8, 1.0

_USERS, _ITEMS, _ROWS = 2000, 600, 160_000
_NETWORK = PredictorConfig(network="mmoe", epochs=4, refits=0)
_OBJECTIVES = ("long_view", "is_like", "is_comment", "is_follow", "is_forward")
_TRAITS = ("user_active_degree", "fans_user_num_range")
_REQUEST_ROWS = (10, 30)
_FIT_BLOCKS = 4
# The truth is fitted on rows that no sample repeats.
_ROWS_KEY, _LABELS_KEY, _FIT_KEY = 0, 1, 2


@dataclass(frozen=True, eq=False)
class RedrawnTruth:
    """A network of scores and context: p_m = σ(βᵀ_m [1, x, tanh(Ax + a)]).

    x are the standardised logits of all scores and the context one-hot. The hidden units are
    random, the weights β are fitted to true probabilities by Newton's steps on the cross entropy,
    so p is close to the true probabilities given the scores and the context. Labels drawn
    from p make it the exact probability given what a fusion sees.

    Attributes:
        sizes: the number of categories of every context feature.
        centre: (objectives,), mean of the logits of the scores.
        spread: (objectives,), their standard deviation.
        hidden: A, (inputs, units).
        offset: a, (units,).
        weights: β, (1 + inputs + units, objectives).
    """

    sizes: Mapping[str, int]
    centre: Floats
    spread: Floats
    hidden: Floats
    offset: Floats
    weights: Floats

    @classmethod
    def fit(
        cls,
        scores: Floats,
        context: Mapping[str, NDArray[np.int16]],
        sizes: Mapping[str, int],
        truth: Floats,
        rng: np.random.Generator,
    ) -> "RedrawnTruth":
        """Return the network that is closest to true probabilities, (rows, objectives)."""
        z, M = logit(scores), scores.shape[1]
        inputs = M + sum(sizes.values())
        # A unit sees all scores, and the context about as strongly as one of them.
        reach = np.where(np.arange(inputs) < M, 0.6, 0.4)[:, None]
        hidden = rng.standard_normal((inputs, _UNITS)) * reach
        offset = rng.standard_normal(_UNITS)
        empty = np.zeros((1 + inputs + _UNITS, M))
        net = cls(sizes, z.mean(0), z.std(0), hidden, offset, empty)
        X = net._features(scores, context)
        return replace(net, weights=np.stack([_logistic(X, column) for column in truth.T], axis=1))

    def __call__(self, scores: Floats, context: Mapping[str, NDArray[np.int16]]) -> Floats:
        """Return p, (rows, objectives)."""
        return sigmoid(self._features(scores, context) @ self.weights)

    def _features(self, scores: Floats, context: Mapping[str, NDArray[np.int16]]) -> Floats:
        one_hot = (np.eye(size)[context[name]] for name, size in self.sizes.items())
        x = np.hstack([(logit(scores) - self.centre) / self.spread, *one_hot])
        return np.hstack([np.ones((len(x), 1)), x, np.tanh(x @ self.hidden + self.offset)])


def _logistic(X: Floats, p: Floats) -> Floats:
    """Return β of the least cross entropy to probabilities p, with a small ridge."""
    beta = np.zeros(X.shape[1])
    beta[0] = logit(p.mean())
    ridge = np.full(X.shape[1], _RIDGE)
    ridge[0] = 0

    def loss(beta: Floats) -> float:
        z = X @ beta
        return float(np.logaddexp(0, z).sum() - p @ z + ridge @ beta**2 / 2)

    least = loss(beta)
    for _ in range(_STEPS):
        q = sigmoid(X @ beta)
        hessian = (X * (q * (1 - q))[:, None]).T @ X + np.diag(ridge)
        step = np.linalg.solve(hessian, X.T @ (p - q) - ridge * beta)
        # Rare objectives are far from quadratic at first: a whole step may overshoot.
        while loss(beta + step) > least and abs(step).max() > 1e-9:
            step /= 2
        beta, least = beta + step, loss(beta + step)
    return beta


@dataclass(frozen=True, eq=False)
class TrainedWorld:
    """Scores by an MMoE that was trained on a log of users and items, on days after that log.

    Nothing about the scores is normal, additive or calibrated: they are what the network made of
    the log. Labels are redrawn from `truth`, a fixed network of scores and context that was
    fitted to the true probabilities of the log's world, so that p_m given what a fusion sees is
    exact. The log world's own probabilities, given user and item, would only bound the ceiling.

    Attributes:
        source: Where users, items and requests come from.
        predictor: The trained networks.
        traits: Category numbers of every user, per feature.
        context: The number of categories of every context feature.
        truth: True probabilities given scores and context; None before they are fitted.
    """

    name: str
    source: KuaiRandWorld
    predictor: Predictor
    traits: dict[str, NDArray[np.int16]]
    context: dict[str, int]
    truth: RedrawnTruth | None = None
    objectives: tuple[str, ...] = _OBJECTIVES

    def sample(
        self,
        rows: int,
        *,
        seed: int,
        start: int = 0,
        horizon: int | None = None,
        with_truth: bool = True,
    ) -> Sample:
        """Return rows `start` … `start + rows` of the stream that `seed` stands for.

        As of `World.sample`: parts that do not overlap are independent parts of the same log.
        """
        assert self.truth is not None
        truth = self.truth

        def empty(count: int) -> Sample:
            return Sample.empty(self.objectives, self.context, count, with_truth=with_truth)

        def block_of(block: int, horizon: float) -> Sample:
            drawn, _ = self.scored(block_generator(seed, block, _ROWS_KEY), block)
            p = truth(drawn.scores, drawn.context)
            uniform = block_generator(seed, block, _LABELS_KEY).random(p.shape)
            labels = (uniform < p).astype(np.uint8)
            time = drawn.request / horizon
            return Sample(drawn.scores, labels, drawn.context, drawn.request, time, p)

        return sample_blocks(empty, block_of, rows, seed, start, horizon)

    def scored(self, rng: np.random.Generator, block: int) -> tuple[Sample, NDArray[np.float64]]:
        """Return a block without labels, and the true logits given user and item."""
        starts, of_row = draw_requests(rng, _REQUEST_ROWS)
        frame, z = self.source.showings(rng, of_row)
        columns = [self.predictor.objectives.index(name) for name in self.objectives]
        scores = score_frame(self.predictor, frame)[:, columns].astype(np.float64)
        user = frame["user_id"].to_numpy()
        context = {name: values[user] for name, values in self.traits.items()}
        for name in ("hour", "tab"):
            context[name] = frame[name].to_numpy().astype(np.int16)
        context = {name: context[name] for name in self.context}
        request = (block * len(of_row) + starts[of_row]).astype(np.int64)
        labels = np.zeros(scores.shape, np.uint8)
        names = [self.source.truth.names.index(name) for name in self.objectives]
        drawn = Sample(scores, labels, context, request, np.zeros(len(user)), None)
        return drawn, z[:, names].astype(np.float64)


@cache
def trained_world(name: str = "trained", redraw: int | None = None) -> TrainedWorld:
    """Return the preset or a redraw; training it takes a minute or more, once per process.

    A redraw has other users, items, tastes and labels, and with them other networks.
    """
    drawn = name if redraw is None else f"{name}-{redraw}"
    return train_world(drawn, 0 if redraw is None else 1 + redraw)


def train_world(
    name: str, draw: int, *, users: int = _USERS, items: int = _ITEMS, rows: int = _ROWS
) -> TrainedWorld:
    """Simulate a log of so many rows, train an MMoE on it and fit the truth.

    Nothing is left on disk.
    """
    source = KuaiRandWorld(users, items, redraw=draw)
    with TemporaryDirectory() as scratch:
        raw, log = Path(scratch) / "raw", Path(scratch) / "log"
        simulate_log(source, rows, raw, seed=draw)
        import_log(find_kuairand(raw), log)
        fitted = Path(scratch) / "predictor"
        predictor = fit_predictor(ImportedLog.open(log), fitted, _NETWORK, folds=0, seed=draw)
    traits, sizes = _traits(source)
    return _with_truth(TrainedWorld(name, source, predictor, traits, sizes), draw)


def _traits(source: KuaiRandWorld) -> tuple[dict[str, NDArray[np.int16]], dict[str, int]]:
    """Return category numbers of every user, and the sizes of all context features."""
    users = source.tables()["data/user_features_pure.csv"]
    traits, sizes = {}, {"hour": 24, "tab": 15}
    for name in _TRAITS:
        codes = users[name].rank("dense").cast(pl.Int16) - 1
        traits[name], sizes[name] = codes.to_numpy(), users[name].n_unique()
    return traits, sizes


def _with_truth(world: TrainedWorld, draw: int) -> TrainedWorld:
    blocks = [
        world.scored(block_generator(draw, block, _FIT_KEY), block) for block in range(_FIT_BLOCKS)
    ]
    scores = np.concatenate([drawn.scores for drawn, _ in blocks])
    context = {k: np.concatenate([drawn.context[k] for drawn, _ in blocks]) for k in world.context}
    known = np.concatenate([sigmoid(z) for _, z in blocks])
    rng = np.random.default_rng([draw, _FIT_KEY])
    return replace(world, truth=RedrawnTruth.fit(scores, context, world.context, known, rng))
