"""Run: the off-policy estimate of a model's value, alone or against another ranking."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from harmonrank.data import Schema, Source
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.values import chances_at
from harmonrank.evaluation.baseline import Baseline
from harmonrank.evaluation.offline._log import LoggedRequests, read_requests
from harmonrank.evaluation.offline._result import OfflineObjective, OfflineResult
from harmonrank.fusion import Method
from harmonrank.metrics import Interval, LoggedValues, logged_values, place_gains
from harmonrank.support.errors import UsageError, shown
from harmonrank.support.options import checked_seed, checked_whole

AS_SHOWN = "the order in which rows were shown"
_FEW_EVENTS = 50
_ENOUGH_SUPPORT = 0.95


def offline(
    model: Method,
    table: Source,
    *,
    against: Method | Baseline | str | None = None,
    k: int = 10,
    randomised: str | None = None,
    position: str | None = None,
    weights: Mapping[str, float] | None = None,
    value: Mapping[str, float] | None = None,
    seed: int = 0,
) -> OfflineResult:
    """Estimate what a model would earn at the first k places, from a log of another ranking.

    Args:
        model: Fitted on other rows.
        table: With labels, requests and positions; candidates that were not shown have none.
        against: What it is compared with, a model, a column or a formula; if left out, the order
            in which rows were shown, unless that was random.
        k: How many places count; each as far as it is looked at.
        randomised: Column that is 1 in requests whose order was random; only these serve then.
        position: The position column, where the model's schema names none.
        weights: Other objective weights of the model.
        value: What events are worth, in place of weights; the worth of all is then estimated too.
        seed: Decides the halves of which each predicts the other.
    """
    require_polars_threads("An estimate from a log")
    if not isinstance(model, Method):
        raise UsageError(f"`model` must be a fitted model. Got {shown(model)}.")
    k, seed = checked_whole("k", k, least=1), checked_seed(seed)
    logged = read_requests(table, _schema(model, position), randomised=randomised, seed=seed)
    worth = model.schema.values_with(value) if weights is None else None
    mine = _Policy(logged, model.score(logged.log, weights=weights, value=value), k, worth)
    against = Baseline.read(table, against) if isinstance(against, str) else against
    other, name = _other(logged, against, k, worth)
    names, values = list(logged.log.schema.names), mine.values
    objectives = _objectives(names, values, None if other is None else other.values)
    if mine.worth is not None:
        objectives += _objectives(["value"], mine.worth, None if other is None else other.worth)
    warnings = tuple(_warnings(model.name, k, logged, values.support, objectives))
    facts = len(values.total), logged.randomised, values.support, mine.largest
    return OfflineResult(model.name, name, k, *facts, tuple(objectives), warnings)


class _Policy:
    """A ranking of the logged requests, and the sums of which its value is estimated."""

    def __init__(
        self,
        logged: LoggedRequests,
        scores: np.ndarray,
        k: int,
        worth: np.ndarray | None,
        *,
        only_shown: bool = False,
    ) -> None:
        log, curve = logged.log, logged.log.schema.examination
        assert log.request is not None
        assert log.position is not None
        first = min(curve)
        discount = chances_at(curve, np.arange(first, first + k))
        gains = place_gains(scores, log.request, discount)
        self.gains = np.where(log.position >= 0, gains, 0.0) if only_shown else gains
        labels, predicted = log.known_labels().astype(np.float64), logged.predicted
        how = {"looked": logged.looked, "propensity": logged.propensity}
        self.values = logged_values(self.gains, labels, log.request, predicted=predicted, **how)
        self.worth = None if worth is None else _worth(self.values, worth)
        weight = np.divide(
            self.gains, logged.propensity, where=logged.propensity > 0, out=0 * gains
        )
        self.largest = float(weight.max(initial=0.0))


def _worth(values: LoggedValues, worth: np.ndarray) -> LoggedValues:
    """Return the same sums of what all events are worth."""
    total = values.ips @ worth
    return replace(
        values,
        ips=total[:, None],
        robust=(values.robust @ worth)[:, None],
        effective=np.array([total.sum() ** 2 / max(total @ total, np.finfo(float).tiny)]),
    )


def _schema(model: Method, position: str | None) -> Schema:
    schema = model.schema
    if position is None or position == schema.position:
        return schema
    return replace(schema, position=position, examination={})


def _other(
    logged: LoggedRequests, against: Any, k: int, worth: np.ndarray | None
) -> tuple[_Policy | None, str | None]:
    if isinstance(against, Method):
        return _Policy(logged, against.score(logged.log), k, worth), against.name
    if isinstance(against, Baseline):
        return _Policy(logged, against.scores[logged.rows], k, worth), against.text
    if against is not None:
        raise UsageError(
            f"`against` must be a fitted model, a column or a formula. Got {shown(against)}."
        )
    if logged.randomised:
        return None, None
    assert logged.log.position is not None
    position = logged.log.position
    last = np.where(position >= 0, position, position.max() + 1)
    return _Policy(logged, -last.astype(np.float64), k, worth, only_shown=True), AS_SHOWN


def _objectives(
    names: list[str], mine: LoggedValues, other: LoggedValues | None
) -> list[OfflineObjective]:
    snips, robust = mine.intervals()
    current: tuple[Interval | None, ...] = (None,) * len(names)
    lifts: tuple[tuple[Interval | None, ...], ...] = (current, current)
    if other is not None:
        current, lifts = other.intervals()[1], mine.lifts(other)
    columns = zip(names, snips, robust, mine.effective.tolist(), current, *lifts, strict=True)
    return [OfflineObjective(*column) for column in columns]


def _warnings(
    model: str, k: int, logged: LoggedRequests, support: float, objectives: list[OfflineObjective]
) -> list[str]:
    lines = []
    if support < _ENOUGH_SUPPORT:
        lines.append(
            f"Thin support: {1 - support:.0%} of what {model} would show at the first {k} "
            "places was never shown, so it is only predicted and intervals do not hold; log a "
            "share of requests in random order."
        )
    few = [f"{one.name} {one.effective:.0f}" for one in objectives if one.effective < _FEW_EVENTS]
    if few:
        lines.append(
            f"Thin support: fewer than {_FEW_EVENTS} effective events of {', '.join(few)}; their "
            "intervals are too narrow. Use more requests."
        )
    if logged.clipped > 0:
        lines.append(
            f"{logged.clipped:.1%} of the rows were shown so far down that their weights are "
            "clipped, which pulls the estimate to the prediction."
        )
    return lines
