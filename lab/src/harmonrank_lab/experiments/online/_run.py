"""Run: the closed loop of serving, answers, delayed labels and learning, hour by hour."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import Schema, hash_shares
from harmonrank.fusion import Method
from harmonrank.support import DataError, OnEvent, UsageError
from harmonrank.worlds import world as world_named
from harmonrank.worlds import world_schema
from harmonrank_lab.experiments.ab import Lift, analyse, lift_of, paired_log_ratio
from harmonrank_lab.experiments.online import _traffic
from harmonrank_lab.experiments.online._arm import Arm, FixedArm, Impressions, rows_of, serve
from harmonrank_lab.experiments.online._traffic import Hour, HourEnded, OnlineConfig, OnlineResult
from harmonrank_lab.worlds import World

LEVEL = 0.95

_SHUFFLE = 3


class Ledger:
    """Sums by user and day.

    Attributes:
        frames: A table per day with a row per user who came.
        expected: A list per day: per arm (users, objectives), what all users would have done in
            this arm, by true chance.
    """

    def __init__(self, users: int, objectives: tuple[str, ...], arms: Sequence[str]) -> None:
        self._objectives, self._arms = objectives, tuple(arms)
        self._shape = (users, len(objectives))
        self.frames: list[pl.DataFrame] = []
        self.expected: list[dict[str, np.ndarray]] = []
        self._clear()

    def _clear(self) -> None:
        self._shown, self._came = np.zeros(self._shape[0], np.int64), np.zeros(self._shape, int)
        self._would = {name: np.zeros(self._shape) for name in self._arms}

    def saw(self, user: np.ndarray, shown: int, came: np.ndarray) -> None:
        """Add what was shown to the users of some requests, and what they did."""
        np.add.at(self._shown, user, shown)
        np.add.at(self._came, user, came)

    def would(self, arm: str, user: np.ndarray, chance: np.ndarray) -> None:
        """Add what the users of all requests would have done in an arm, by true chance."""
        np.add.at(self._would[arm], user, chance)

    def end_day(self, day: int, names: np.ndarray) -> None:
        """Close a day; `names` has the arm of every user."""
        came = np.flatnonzero(self._shown)
        columns = {"user_id": came, "arm": names[came], "day": np.full(len(came), day, np.int16)}
        columns["impressions"] = self._shown[came]
        columns |= {name: self._came[came, m] for m, name in enumerate(self._objectives)}
        self.frames.append(pl.DataFrame(columns))
        self.expected.append(self._would)
        self._clear()

    def log(self) -> pl.DataFrame:
        """Return the days so far as one table."""
        return pl.concat(self.frames)

    def exact(self, base: str) -> tuple[Lift, ...]:
        """Return the lifts by true chance, of the same users in all arms."""
        total = {arm: sum(day[arm] for day in self.expected) for arm in self._arms}
        lifts = []
        for arm in (name for name in self._arms if name != base):
            both = paired_log_ratio(np.asarray(total[base]), np.asarray(total[arm]))
            for name, ratio, error in zip(self._objectives, *both, strict=True):
                lifts.append(lift_of(arm, name, float(ratio), float(error), LEVEL))
        return tuple(lifts)


def run_online(
    world: World | str,
    *,
    seed: int = 0,
    arms: Mapping[str, str | Method] | Sequence[str] = tuple(_traffic.ARMS),
    progress: OnEvent | None = None,
    **rules: Any,
) -> OnlineResult:
    """Run an experiment on a simulated platform.

    Users are split into arms by a salted hash. Every hour each arm ranks the candidates of its
    users' requests and shows the best; a place is looked at by its chance, and an item that is
    looked at is answered by its true probabilities. An arm learns again from its own log, from
    rows whose labels have had time to come. Before the first day all arms learn from the same
    traffic in random order.

    Args:
        world: Where requests and answers come from, or its name.
        seed: Decides everything that is drawn.
        arms: Method of each arm by name, the control first; or names of `ARMS` or of methods. A
            fitted model in place of a method ranks as it is and learns nothing.
        progress: Called after every hour.
        rules: Other fields of `OnlineConfig`: users, days, hours, requests_per_hour, and more.
    """
    given = dict(arms) if isinstance(arms, Mapping) else {a: _traffic.ARMS.get(a, a) for a in arms}
    fixed = {name: arm for name, arm in given.items() if isinstance(arm, Method)}
    named = {name: arm.name if isinstance(arm, Method) else arm for name, arm in given.items()}
    config = OnlineConfig(arms=named, **rules)
    place = world_named(world) if isinstance(world, str) else world
    return _Experiment(place, config, seed, fixed).run(progress or (lambda _: None))


def _check_columns(world: World, schema: Schema, model: Method) -> None:
    """Refuse a model that reads what the world does not have."""
    there = {*schema.score_columns, *schema.context}
    for name in (*model.schema.score_columns, *model.schema.context):
        if name not in there:
            raise UsageError(
                f"The model reads a column '{name}', which world '{world.name}' does not have; "
                "name the world that it was fitted on."
            )


class _Experiment:
    """The state of a running experiment."""

    def __init__(
        self, world: World, config: OnlineConfig, seed: int, fixed: Mapping[str, Method]
    ) -> None:
        self._started, self._fixed = perf_counter(), fixed
        self._world, self._config, self._seed = world, config, seed
        schema = world_schema(world)
        self._schema = Schema(schema.objectives, schema.context, schema.request)
        for model in fixed.values():
            _check_columns(world, self._schema, model)
        self._traffic = _traffic.Traffic(world, config, seed)
        self._curve = config.examination()
        self._delay, self._wait = config.delay(world.objectives), config.wait(world.objectives)
        share = hash_shares(np.arange(config.users), f"online-{seed}")
        self._group = (share * len(config.groups)).astype(np.int64)
        self._ledger = Ledger(config.users, world.objectives, tuple(config.arms))
        self._requests = 0

    def run(self, progress: OnEvent) -> OnlineResult:
        config, arms = self._config, self._first_arms()
        names = np.array(config.groups)[self._group]
        for hour in self._traffic.hours():
            if hour.number and hour.number % config.retrain_hours == 0:
                for arm in arms.values():
                    arm.learn(hour.number, self._wait)
            self._serve(hour, arms)
            if (hour.number + 1) % config.hours == 0:
                self._ledger.end_day(hour.number // config.hours, names)
            progress(HourEnded(hour.number, config.days * config.hours))
        return self._result()

    def _first_arms(self) -> dict[str, Arm]:
        """Let every arm learn from the same warm-up."""
        config = self._config
        hours = self._traffic.warmup() if len(self._fixed) < len(config.arms) else ()
        warmup = [self._shuffled(hour) for hour in hours]
        learner = partial(
            Arm, schema=self._schema, warmup=warmup, window_rows=config.window_rows, seed=self._seed
        )
        try:
            return {
                name: FixedArm(self._fixed[name], self._schema)
                if name in self._fixed
                else learner(method, options=config.options.get(name))
                for name, method in config.arms.items()
            }
        except DataError as error:
            raise DataError(
                f"The warm-up is too short; raise requests_per_hour or warmup_hours. {error}"
            ) from None

    def _shuffled(self, hour: Hour) -> Impressions:
        """Show items in random order."""
        rng = np.random.default_rng([self._seed, _SHUFFLE, hour.number + self._config.warmup_hours])
        answers = serve(hour, rng.random(hour.scores.shape[:2]), self._curve)
        return rows_of(hour, answers, np.ones(len(hour.user), bool), self._delay, self._wait)

    def _serve(self, hour: Hour, arms: Mapping[str, Arm]) -> None:
        """Let every arm rank all requests; only its own users see what it shows."""
        config, group = self._config, self._group[hour.user]
        self._requests += len(group)
        answers = {name: serve(hour, arm.score(hour), self._curve) for name, arm in arms.items()}
        for name, answer in answers.items():
            chance = hour.chance[np.arange(len(group))[:, None], answer.order]
            self._ledger.would(name, hour.user, np.einsum("k,rkm->rm", self._curve, chance))
        for number, name in enumerate(config.groups):
            # The A/A arm shows what the control's model says, and teaches it nothing.
            answer, mine = answers.get(name, answers[config.base]), group == number
            self._ledger.saw(hour.user[mine], config.top_k, answer.came[mine].sum(axis=1))
            if name in arms:
                arms[name].remember(rows_of(hour, answer, mine, self._delay, self._wait))

    def _result(self) -> OnlineResult:
        config, world, log = self._config, self._world, self._ledger.log()
        settings = {k: v for k, v in asdict(config).items() if k != "arms"}
        settings |= {"examination": self._curve.tolist(), "wait_hours": self._wait}
        settings["delays"] = dict(zip(world.objectives, self._delay.tolist(), strict=True))
        analysis = analyse(
            log, outcomes=world.objectives, impressions="impressions",
            control=config.base, aa_arm=config.aa_arm,
        )  # fmt: skip
        exact, seconds = self._ledger.exact(config.base), perf_counter() - self._started
        return OnlineResult(
            world.name, self._seed, world.objectives, dict(config.arms), settings,
            self._requests, analysis, exact, log, seconds,
        )  # fmt: skip
