"""Guardrails: what a new version must hold to become the current one."""

__all__ = ["Guardrails", "change_of", "checks_of", "request_change_of"]

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import expm1, pi, sqrt, tan
from statistics import NormalDist
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from harmonrank.data import Log
from harmonrank.fusion import Method
from harmonrank.fusion.quality.outcomes import outcomes_of
from harmonrank.metrics import (
    Interval,
    auc_sum_interval,
    grouped_auc_influence,
    interval_of_sums,
)
from harmonrank.registry.version import Check, Summary
from harmonrank.support.options import Nonnegative

_CHANCE = 3.0  # standard errors that a rate may be off by chance


@dataclass(frozen=True)
class Guardrails:
    """Settings of a registry; null switches a bound off.

    Attributes:
        tolerance: How far the AUC of an objective may be below that of the current version:
            within requests, or over all rows where these have no requests.
        tolerances: Other tolerances, by objective.
        evidence: 'harm' refuses a version that is proven to be worse than the tolerance allows:
            its whole paired interval lies below. 'safety' refuses one that is not proven to be
            within it: some of the interval lies below.
        level: Of the paired interval.
        calibration: How far the mean probability of an objective may be from the share of
            positives, as a part of it, beyond chance.
        shift: How far the median of the fused score may move, in standard deviations.
        scale: How many times as wide, or as narrow, the fused score may become.
        require_labels: Whether a version without a labelled table is refused.
    """

    tolerance: Nonnegative = 0.002
    tolerances: dict[str, Nonnegative] = field(default_factory=dict)
    evidence: Literal["harm", "safety"] = "harm"
    level: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    calibration: Nonnegative | None = 0.25
    shift: Nonnegative | None = 0.5
    scale: Annotated[float, Meta(ge=1, le=1e12)] | None = 2.0
    require_labels: bool = False


def checks_of(
    rules: Guardrails, new: Method, current: Method | None, log: Log | None, before: Summary | None
) -> tuple[list[Check], Summary | None]:
    """Hold a new version to the guardrails; also return where its fused scores lie.

    Args:
        rules: The settings.
        new: As it was read back from the disk.
        current: What it would replace.
        log: Rows to measure on, with labels or without.
        before: Where the fused scores of the current version lay when it was published. It is
            what rows without labels, such as those of a replaced upstream model, are compared
            with: the current version itself may be wrong there.
    """
    checks = [_columns(new, current)]
    if not checks[0].passed:
        return checks, None
    labelled = log is not None and log.labels is not None
    if not labelled:
        what = "no labelled table was given, so no AUC was compared"
        checks.append(Check("labels", False if rules.require_labels else None, what))
    if log is None:
        return checks, None
    fused = new.score(log)
    old = None if current is None else current.score(log)
    summary = Summary.of(fused)
    if labelled:
        checks += [] if old is None else _areas(rules, fused, old, log)
        checks += _calibration(rules, new, log)
        before = None if old is None else Summary.of(old)
    checks += [] if before is None else _distribution(rules, summary, before)
    return checks, summary


def _columns(new: Method, current: Method | None) -> Check:
    """Callers name columns, so a version that needs others belongs into another registry."""
    now = _needed(new)
    if current is None:
        return Check("columns", True, "the first version says which columns there are")
    then = _needed(current)
    if set(now) != set(then):
        return Check(
            "columns",
            False,
            f"objectives and columns must be those of the current version, {_named(then)}; got "
            f"{_named(now)}",
        )
    texts, before = _texts(new), _texts(current)
    for name in texts.keys() & before.keys():
        if texts[name] != before[name]:
            kinds = ("text", "numbers") if before[name] else ("numbers", "text")
            what = f"context column '{name}' must hold {kinds[0]}, as in the current version"
            return Check("columns", False, f"{what}; got {kinds[1]}")
    return Check("columns", True, "objectives, score and context columns are the same")


def _texts(model: Method) -> dict[str, bool]:
    """Return which context columns hold text; one in which training saw no value may hold any."""
    features = model.fitted.encoder.features
    return {feature.name: feature.kind == "text" for feature in features if feature.values}


def _needed(model: Method) -> tuple[Sequence[str], ...]:
    """Return what a caller must know: a score on another scale is another score."""
    schema = model.schema
    scores = zip(schema.names, schema.score_columns, schema.scales, strict=True)
    named = ((name, c if s == "probability" else f"{c} ({s})") for name, c, s in scores)
    return (*named, *schema.context)


def _named(columns: Sequence[Sequence[str]]) -> str:
    return ", ".join(c if isinstance(c, str) else " from ".join(c) for c in columns)


def change_of(
    fused: np.ndarray, old: np.ndarray, log: Log, objective: int, level: float = 0.95
) -> Interval:
    """Return the paired interval of an objective's AUC by new scores less that by old ones."""
    outcomes, weight = outcomes_of(log, [objective]), log.sample_weight
    return auc_sum_interval(
        fused, outcomes, minus=old, level=level, groups=log.units, sample_weight=weight
    )


def request_change_of(
    fused: np.ndarray, old: np.ndarray, log: Log, objective: int, level: float = 0.95
) -> Interval | None:
    """Return the same within requests; None where no request has an AUC of the objective.

    What either score gives to a whole request is no part of it. The interval is as wide as few
    users, or else requests, leave it.
    """
    if log.request is None:
        return None
    outcomes, weight = outcomes_of(log, [objective]), log.sample_weight
    (after, moves), (before, shared) = (
        grouped_auc_influence(scores, outcomes, log.request, sample_weight=weight, units=log.user)
        for scores in (fused, old)
    )
    units = (moves - shared)[~np.isnan(moves[:, 0])]
    if not len(units):
        return None
    (reach,) = interval_of_sums((units**2).sum(axis=0), len(units), 1, level)
    moved = Interval.around(float((after - before)[0]), float(reach), level)
    return _widened(moved, len(units) - 1)


def _areas(rules: Guardrails, fused: np.ndarray, old: np.ndarray, log: Log) -> Iterator[Check]:
    """Compare each AUC within requests where rows have them; a ranking changes nothing else."""
    for m, (name, sign) in enumerate(zip(log.schema.names, log.schema.signs, strict=True)):
        whole = change_of(fused, old, log, m, rules.level)
        moved = request_change_of(fused, old, log, m, rules.level)
        what, beside = "AUC within requests", f"; over all rows by {whole.estimate:+.4f}"
        if moved is None:
            moved, what, beside = _of_few(whole, log, m), "AUC", ""
            if log.request is not None:
                what = "no request has both labels, so AUC over all rows counts; it"
        least = -rules.tolerances.get(name, rules.tolerance)
        # Of an unwanted objective it is a rise that does harm.
        worst, best = (moved.low, moved.high) if sign > 0 else (-moved.high, -moved.low)
        passed = bool((worst if rules.evidence == "safety" else best) >= least)
        may = f"it may {'fall' if sign > 0 else 'rise, as it is unwanted,'} by {-least:g}"
        yield Check(f"auc {name}", passed, f"{what} changes by {_signed(moved)}{beside}; {may}")


def _of_few(moved: Interval, log: Log, objective: int) -> Interval:
    """Return the interval as wide as few users or requests with the rarer label leave it."""
    labels, _ = log.shown_labels(objective)
    units = np.arange(log.rows) if log.units is None else log.units
    units = units if log.shown is None else units[log.shown[:, objective]]
    if log.schema.names[objective] in log.schema.graded:
        return _widened(moved, len(np.unique(units)) - 1)
    return _widened(moved, min(len(np.unique(units[labels == v])) for v in (0, 1)) - 1)


def _widened(moved: Interval, free: int) -> Interval:
    """Return an interval with Student's distribution in place of the normal.

    How much few requests differ is known from themselves alone, and of a single one nothing is.
    """
    if free < 1:
        return replace(moved, low=-np.inf, high=np.inf)
    reach = (moved.high - moved.estimate) * _student(moved.level, free)
    return replace(moved, low=moved.estimate - reach, high=moved.estimate + reach)


def _student(level: float, free: int) -> float:
    """Return how much wider Student's interval is than the normal one, within 1 %.

    >>> [round(_student(0.95, free) * 1.96, 2) for free in (1, 2, 9, 30)]  # 12.71 4.30 2.26 2.04
    [12.71, 4.34, 2.26, 2.04]
    """
    z = NormalDist().inv_cdf(0.5 + 0.5 * level)
    if free == 1:
        return tan(0.5 * pi * level) / z
    # Wallace's approximation, solved for t.
    squeezed = z**2 * (free - 5 / 6) / (free - 2 / 3 + 0.1 / free) ** 2
    return sqrt(free * expm1(squeezed)) / z


def _signed(moved: Interval) -> str:
    return f"{moved.estimate:+.4f} ({moved.low:+.4f} to {moved.high:+.4f})"


def _calibration(rules: Guardrails, new: Method, log: Log) -> Iterator[Check]:
    """Compare mean predictions with mean labels over the rows that show each objective."""
    if rules.calibration is None or not new.traits.probabilities:
        return
    predicted = new.probabilities(log)
    for m, name in enumerate(log.schema.names):
        labels, weight = log.shown_labels(m)
        there = slice(None) if log.shown is None else log.shown[:, m]
        if not len(labels):
            continue
        y, p = (float(np.average(v, weights=weight)) for v in (labels, predicted[there, m]))
        w = np.ones(len(labels)) if weight is None else weight
        if log.schema.plain:
            what = f"mean probability {p:.4g}, share of positives {y:.4g}"
            # Of few positives, chance may leave so few that their own rate says it could not have.
            rate = max(y, min(p, 0.5))
            error = sqrt(rate * (1 - rate) * (w @ w)) / w.sum()
        else:
            what = f"mean prediction {p:.4g}, mean label {y:.4g}"
            error = sqrt((w**2) @ (labels - y) ** 2) / w.sum()
        most = rules.calibration * abs(y) + _CHANCE * error
        passed = bool(abs(p - y) <= most)
        yield Check(f"calibration {name}", passed, f"{what}; {most:.2g} apart is allowed")


def _distribution(rules: Guardrails, now: Summary, before: Summary) -> Iterator[Check]:
    unit = max(before.width, 1e-300)
    shift, scale = abs(now.middle - before.middle) / unit, now.width / unit
    if rules.shift is not None:
        what = f"median moves by {shift:.2f} standard deviations; {rules.shift:g} is allowed"
        yield Check("fused median", bool(shift <= rules.shift), what)
    if rules.scale is not None:
        inside = bool(1 / rules.scale <= scale <= rules.scale)
        what = f"width × {scale:.2f}; × {1 / rules.scale:.2f} to × {rules.scale:g} is allowed"
        yield Check("fused width", inside, what)
